//! The command line of rpcgen: short flags, which may be combined, as rpcsvc-proto's rpcgen 1.4.3 has
//! them.

use std::ffi::OsString;
use std::path::PathBuf;

use tenon_gen::c::{Size, Transport};
use tenon_idl::Define;

/// The options of a command line.
#[derive(Debug, Default, PartialEq)]
pub struct RpcgenOptions {
    /// The interface; `None` is standard input.
    pub file: Option<PathBuf>,
    /// Path of a single output; `None` is standard output.
    pub out: Option<PathBuf>,
    /// The single output that is wanted; `None` is one file for each.
    pub only: Option<OutputKind>,
    /// Samples, too.
    pub all: bool,
    /// Symbols of the preprocessor.
    pub defines: Vec<Define>,
    /// Results are where the caller wants them.
    pub reentrant: bool,
    /// Arguments are passed by value.
    pub by_value: bool,
    /// Dispatch tables.
    pub tables: bool,
    /// The server may be started by inetd.
    pub inetd: bool,
    /// Seconds after which such a server ends; `None` is never.
    pub idle_seconds: Option<u32>,
    /// The server tells the system's log.
    pub syslog: bool,
    /// Clients and servers are Tenon's.
    pub fast: bool,
    /// Size limit of routines.
    pub size: Size,
    /// Transports that the server listens on.
    pub transports: Vec<Transport>,
    /// The flags, for the template of a Makefile.
    pub flags: Vec<String>,
}

/// A single output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputKind {
    /// `-h`
    Header,
    /// `-c`
    Xdr,
    /// `-l`
    Client,
    /// `-m`: dispatchers without `main`
    Dispatchers,
    /// `-s`: with it
    Server,
    /// `-t`
    Table,
    /// `-Sc`
    SampleClient,
    /// `-Ss`
    SampleServer,
    /// `-Sm`
    Makefile,
}

/// The request of a command line.
#[derive(Debug, PartialEq)]
pub enum RpcgenRequest {
    /// Output.
    Generate(Box<RpcgenOptions>),
    /// `--version`
    Version,
    /// `--help`
    Help,
}

/// Seconds after which a server that inetd has started ends, if `-K` says nothing.
const IDLE_SECONDS: u32 = 120;

/// Reads a command line; the error is what to say in front of the usage, if anything.
pub fn parse(arguments: &[OsString]) -> Result<RpcgenRequest, String> {
    let mut options = RpcgenOptions {
        idle_seconds: Some(IDLE_SECONDS),
        ..RpcgenOptions::default()
    };
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let text = argument.to_string_lossy();
        match text.as_ref() {
            "--version" => return Ok(RpcgenRequest::Version),
            "--help" => return Ok(RpcgenRequest::Help),
            "--fast" => {
                options.fast = true;
                options.flags.push("--fast".to_owned());
            }
            "--small" => options.size(Size::Small, "--small")?,
            "--large" => options.size(Size::Large, "--large")?,
            flags if flags.len() > 1 && flags.starts_with('-') => {
                options.flags(&flags[1..], &mut || rest.next().cloned())?;
            }
            _ if options.file.is_some() => {
                return Err("Cannot specify more than one input file!".to_owned());
            }
            _ => options.file = Some(PathBuf::from(argument)),
        }
    }
    options.check()?;
    Ok(RpcgenRequest::Generate(Box::new(options)))
}

impl RpcgenOptions {
    /// Reads one word of flags; `next` hands out the words behind it.
    fn flags(
        &mut self,
        word: &str,
        next: &mut dyn FnMut() -> Option<OsString>,
    ) -> Result<(), String> {
        let mut letters = word.char_indices();
        while let Some((at, letter)) = letters.next() {
            let behind = &word[at + letter.len_utf8()..];
            if letter == 'S' {
                let sample = letters.next().map(|(_, sample)| sample);
                self.only(match sample {
                    Some('c') => OutputKind::SampleClient,
                    Some('s') => OutputKind::SampleServer,
                    Some('m') => OutputKind::Makefile,
                    _ => return Err("-S is followed by c, s or m: -Sc, -Ss, -Sm".to_owned()),
                })?;
                continue;
            }
            if matches!(letter, 'D' | 'o' | 's' | 'n' | 'i' | 'K' | 'Y') {
                let value = match behind {
                    "" if letter != 'D' => next(),
                    behind => Some(OsString::from(behind)),
                };
                return self.valued(letter, value.filter(|value| !value.is_empty()));
            }
            self.flag(letter)?;
        }
        Ok(())
    }

    fn flag(&mut self, letter: char) -> Result<(), String> {
        match letter {
            'a' => self.all = true,
            'c' => self.only(OutputKind::Xdr)?,
            'h' => self.only(OutputKind::Header)?,
            'l' => self.only(OutputKind::Client)?,
            'm' => self.only(OutputKind::Dispatchers)?,
            't' => self.only(OutputKind::Table)?,
            'M' => self.reentrant = true,
            'N' => self.by_value = true,
            'T' => self.tables = true,
            'I' => self.inetd = true,
            'L' => self.syslog = true,
            // ANSI C is what is written; sockets are what servers stand on.
            'C' | 'b' | 'k' => {}
            '5' => return Err("SysVr4 compatibility mode needs TLI, which Linux lacks.".to_owned()),
            _ => return Err(format!("There is no flag -{letter}.")),
        }
        if matches!(letter, 'M' | 'N' | 'T' | 'I' | 'L' | 'C' | 'b') {
            self.flags.push(format!("-{letter}"));
        }
        Ok(())
    }

    fn valued(&mut self, letter: char, value: Option<OsString>) -> Result<(), String> {
        let value = value.ok_or_else(|| format!("-{letter} lacks its value."))?;
        let text = value.to_string_lossy().into_owned();
        match letter {
            'D' => self.defines.push(Define::parse(&text)),
            'o' if self.out.is_some() => {
                return Err("Cannot specify more than one output file!".to_owned());
            }
            'o' => self.out = Some(PathBuf::from(value)),
            's' => self.transport(&text)?,
            'n' => return Err("Cannot use netid flag without TIRPC!".to_owned()),
            'i' => drop(number(letter, &text)?),
            'K' => {
                let seconds = number(letter, &text)?;
                self.idle_seconds = u32::try_from(seconds).ok();
            }
            // There is no preprocessor to be looked for: it is built in.
            _ => {}
        }
        Ok(())
    }

    fn transport(&mut self, name: &str) -> Result<(), String> {
        let transport = match name {
            "udp" => Transport::Udp,
            "tcp" => Transport::Tcp,
            _ => return Err(format!("illegal nettype {name}: it is udp or tcp")),
        };
        if self.only != Some(OutputKind::Server) {
            self.only(OutputKind::Server)?;
        }
        if !self.transports.contains(&transport) {
            self.transports.push(transport);
        }
        Ok(())
    }

    fn only(&mut self, only: OutputKind) -> Result<(), String> {
        match self.only.replace(only) {
            None => Ok(()),
            Some(_) => Err("Cannot have more than one file generation flag!".to_owned()),
        }
    }

    fn size(&mut self, size: Size, flag: &str) -> Result<(), String> {
        if self.size != Size::Balanced && self.size != size {
            return Err("--small and --large exclude each other.".to_owned());
        }
        self.size = size;
        self.flags.push(flag.to_owned());
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        if self.only.is_some() && self.all {
            return Err("Cannot have more than one file generation flag!".to_owned());
        }
        if self.tables && self.by_value {
            return Err("Cannot use table flags with newstyle!".to_owned());
        }
        if self.only.is_none() && (self.file.is_none() || self.out.is_some()) {
            return Err(String::new());
        }
        Ok(())
    }
}

fn number(letter: char, text: &str) -> Result<i64, String> {
    text.parse()
        .map_err(|_| format!("-{letter} takes a number, and `{text}' is none."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<RpcgenRequest, String> {
        let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        parse(&words)
    }

    fn options(line: &str) -> RpcgenOptions {
        match read(line) {
            Ok(RpcgenRequest::Generate(options)) => *options,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn flags_may_be_combined() {
        assert!(options("--fast -h a.x").fast);
        assert_eq!(options("-h a.x").size, Size::Balanced);
        assert_eq!(options("--small -h a.x").size, Size::Small);
        assert_eq!(options("-h --large a.x").size, Size::Large);
        let of = options("-CNMh -o a.h -DX=2 -DY a.x");
        assert!(of.by_value && of.reentrant);
        assert_eq!(of.only, Some(OutputKind::Header));
        assert_eq!(of.out, Some(PathBuf::from("a.h")));
        assert_eq!(of.defines, [Define::parse("X=2"), Define::parse("Y")]);
        assert_eq!(options("-Ssoout.c a.x").out, Some(PathBuf::from("out.c")));
    }

    #[test]
    fn servers_listen_where_they_are_told() {
        let of = options("-s tcp -s udp -s tcp a.x");
        assert_eq!(of.transports, [Transport::Tcp, Transport::Udp]);
        assert_eq!(options("-I -K -1 a.x").idle_seconds, None);
        assert_eq!(options("-I -K 7 a.x").idle_seconds, Some(7));
        assert_eq!(options("a.x").idle_seconds, Some(120));
    }

    #[test]
    fn what_rpcgen_refuses_is_refused() {
        let refused = [
            "",
            "-h -c a.x",
            "-a -h a.x",
            "-Sx a.x",
            "-S a.x",
            "-o",
            "-Z a.x",
            "a.x b.x",
            "-D",
            "-h -s tcp a.x",
            "-n tcp a.x",
            "-s ipx a.x",
            "-o a -o b -h a.x",
            "-i x a.x",
            "-o a.h a.x",
            "-T -N a.x",
            "--small --large a.x",
        ];
        for line in refused {
            assert!(read(line).is_err(), "{line}");
        }
        assert_eq!(read("--version -Z"), Ok(RpcgenRequest::Version));
        assert_eq!(read("--help"), Ok(RpcgenRequest::Help));
    }
}
