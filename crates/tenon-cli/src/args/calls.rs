//! What commands take that call and serve.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum, ValueHint};
use tenon::Metadata;

use super::{Factor, InterfaceArgs};

#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum AuthArg {
    /// AUTH_NONE: nobody in particular
    None,
    /// AUTH_SYS: this process's user, group and host name
    Sys,
}

/// How to wait for what the other end sends.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum WaitArg {
    /// Sleep until it comes
    Block,
    /// Look until it comes: when both ends have processors to spare
    Spin,
    /// Look for about as long as waking up takes, then sleep
    Adaptive,
}

impl WaitArg {
    /// What the run time calls it.
    pub fn policy(self) -> tenon::Waiting {
        match self {
            Self::Block => tenon::Waiting::Block,
            Self::Spin => tenon::Waiting::Spin,
            Self::Adaptive => tenon::Waiting::Adaptive,
        }
    }
}

/// How a call is made.
#[derive(Debug, Args)]
#[command(next_help_heading = "Calling")]
pub struct CallOptionArgs {
    /// Who the caller says that it is
    #[arg(long, value_enum, default_value = "none")]
    pub auth: AuthArg,

    /// Metadata of the call, by the lean protocol, several times if need be; the value of a key that ends in `-bin` is
    /// written in hexadecimal digits
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_pair)]
    pub metadata: Vec<MetadataPair>,

    /// Send a token (`--metadata "authorization=Bearer ..."`) over a network without encryption, too
    #[arg(long)]
    pub allow_insecure: bool,

    /// Give up after so long: 500ms, 5s, 2m
    #[arg(long, value_name = "TIME", default_value = "25s", value_parser = parse_duration)]
    pub timeout: Duration,

    /// How to wait for a reply
    #[arg(long, value_enum, default_value = "adaptive")]
    pub wait: WaitArg,

    /// Refuse replies that bend their representation (padding that is not zero, a boolean of 2)
    #[arg(long)]
    pub strict: bool,
}

#[derive(Debug, Args)]
pub struct CallArgs {
    /// tcp://HOST[:PORT], udp://HOST[:PORT], unix:///PATH or onc+xdp://HOST:PORT, or for the lean protocol
    /// lean+tcp://HOST[:PORT], lean+udp://HOST[:PORT], lean+unix:///PATH, shm:///PATH or xdp://HOST:PORT; where
    /// no port is said, rpcbind is asked
    pub address: String,

    /// The interface file, which may be left out if the server has reflection (`tenon list` shows it); `-`
    /// reads it from stdin. Then the procedure, by its name in the interface; PROGRAM.NAME if several programs have one
    /// of that name. Last its arguments as JSON, if it has some; `-` reads them from stdin
    #[arg(
        value_names = ["FILE", "PROCEDURE", "JSON"],
        num_args = 1..=3,
        required = true,
        allow_negative_numbers = true,
        value_hint = ValueHint::FilePath
    )]
    words: Vec<String>,

    /// The version to call, if the procedure's name occurs in several
    #[arg(long = "version", value_name = "NUMBER")]
    pub version: Option<u32>,

    /// Print the answer on one line
    #[arg(long)]
    pub compact: bool,

    /// Print the metadata of the reply on stderr, a line `KEY=VALUE` for each pair
    #[arg(long)]
    pub reply_metadata: bool,

    #[command(flatten)]
    pub streams: StreamArgs,

    #[command(flatten)]
    pub options: CallOptionArgs,

    #[command(flatten)]
    pub interface: InterfaceArgs,
}

/// Where the items of streams come from and go to.
#[derive(Debug, Args)]
pub struct StreamArgs {
    /// Read the items of an argument that is a stream from FILE, and not from stdin: a line of JSON each, or of
    /// `opaque<>` the bytes of the file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub input: Option<PathBuf>,

    /// Write the items of a result that is a stream to FILE, and not to stdout: a line of JSON each, or of
    /// `opaque<>` the bytes
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,

    /// Items of `opaque<>` are lines of JSON, too
    #[arg(long)]
    pub json_items: bool,
}

/// The procedure that is called, and where its interface is.
#[derive(Debug, PartialEq)]
pub struct CallTarget<'a> {
    /// The interface file; `None` if the server is asked.
    pub file: Option<&'a Path>,
    pub procedure: &'a str,
    pub json: Option<&'a str>,
}

impl CallArgs {
    /// Returns what the words behind the address say. JSON is never a name, so that two words are a file and a
    /// procedure if the second is one, and a procedure and its arguments otherwise.
    pub fn target(&self) -> Result<CallTarget<'_>, String> {
        let words: Vec<&str> = self.words.iter().map(String::as_str).collect();
        let (file, procedure, json) = match words[..] {
            [file, procedure, json] => (Some(file), procedure, Some(json)),
            [file, procedure] if is_name(procedure) => (Some(file), procedure, None),
            [procedure, json] => (None, procedure, Some(json)),
            [procedure] => (None, procedure, None),
            _ => return Err("name a procedure".to_owned()),
        };
        let may_be_file = procedure.contains(['.', '/']);
        if file.is_none() && may_be_file && Path::new(procedure).exists() {
            return Err(format!(
                "`{procedure}` is a file: name the procedure behind it"
            ));
        }
        if !is_name(procedure) {
            return Err(format!("`{procedure}` is no name of a procedure"));
        }
        let file = file.map(Path::new);
        Ok(CallTarget {
            file,
            procedure,
            json,
        })
    }
}

fn is_name(word: &str) -> bool {
    let may_begin = |char: char| char.is_ascii_alphabetic() || char == '_';
    let may_follow = |char: char| may_begin(char) || char.is_ascii_digit() || ".:".contains(char);
    let is_literal = ["true", "false", "null"].contains(&word);
    word.starts_with(may_begin) && word.chars().all(may_follow) && !is_literal
}

#[derive(Debug, Args)]
pub struct ListArgs {
    /// tcp://HOST[:PORT], udp://HOST[:PORT], unix:///PATH or onc+xdp://HOST:PORT, or for the lean protocol
    /// lean+tcp://HOST[:PORT], lean+udp://HOST[:PORT], lean+unix:///PATH, shm:///PATH or xdp://HOST:PORT; where
    /// no port is said, rpcbind is asked
    pub address: String,

    /// Print the list as JSON, with the SHA-256 of the descriptors
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub options: CallOptionArgs,
}

#[derive(Debug, Args)]
pub struct DescribeArgs {
    /// The address of a server, or an interface file or descriptor; `-` reads one from stdin
    #[arg(value_name = "ADDRESS|FILE", value_hint = ValueHint::FilePath)]
    pub source: String,

    /// The name of a type, constant, program, version or procedure; PROGRAM.NAME for a procedure of one program
    pub name: Option<String>,

    #[command(flatten)]
    pub options: CallOptionArgs,

    #[command(flatten)]
    pub interface: InterfaceArgs,
}

#[derive(Debug, Args)]
pub struct AccountArgs {
    /// lean+tcp://HOST[:PORT], lean+udp://HOST[:PORT], lean+unix:///PATH, shm:///PATH or xdp://HOST:PORT; with
    /// tcp://, udp://, unix:// and onc+xdp:// only the client's side is known
    pub address: String,

    /// The interface file; `-` reads it from stdin
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,

    /// The procedure, by its name in the interface or as PROGRAM.NAME; NULL is procedure 0. Without one, Null
    /// is shown beside the largest result of known size that takes no arguments
    pub procedure: Option<String>,

    /// The arguments as JSON; `-` reads them from stdin
    #[arg(value_name = "JSON", allow_negative_numbers = true)]
    pub arguments: Option<String>,

    /// Show this procedure beside the first, and what each byte costs: its name and, behind a space, its
    /// arguments as JSON
    #[arg(long, value_name = "PROCEDURE JSON")]
    pub beside: Option<String>,

    /// How many calls, after a hundred that do not count; as many are made without an account
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub calls: u32,

    /// Divide the way of the packets by the kernel's time stamps: headers and checksum, system call, kernel out, wire,
    /// kernel in, wake-up; at lean+udp:// of both ends, at udp:// of the client
    #[arg(long)]
    pub packets: bool,

    /// Say what a call would take if something were so many times as fast, or took no time (0): cpu (all software),
    /// wire, wakeup (0: both ends look instead of sleeping), headers (with checksums and copying), stubs (client and
    /// server outside the kernel); all but stubs need --packets
    #[arg(long, value_name = "NAME=FACTOR,...", value_delimiter = ',')]
    pub what_if: Vec<Factor>,

    /// The version to call, if the procedure's name occurs in several
    #[arg(long = "version", value_name = "NUMBER")]
    pub version: Option<u32>,

    /// Print the account as JSON
    #[arg(long)]
    pub json: bool,

    /// Draw the time line into FILE, too
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub svg: Option<PathBuf>,

    #[command(flatten)]
    pub options: CallOptionArgs,

    #[command(flatten)]
    pub interface: InterfaceArgs,
}

#[derive(Debug, Clone, Copy)]
pub struct ProgramVersion {
    pub program: u32,
    pub version: Option<u32>,
}

#[derive(Debug, Args)]
pub struct PingArgs {
    /// tcp://HOST[:PORT], udp://HOST[:PORT], unix:///PATH or onc+xdp://HOST:PORT, or for the lean protocol
    /// lean+tcp://HOST[:PORT], lean+udp://HOST[:PORT], lean+unix:///PATH, shm:///PATH or xdp://HOST:PORT; where
    /// no port is said, rpcbind is asked
    pub address: String,

    /// PROGRAM or PROGRAM.VERSION, in numbers (0x... too); without a version, all are looked for
    #[arg(value_parser = parse_program)]
    pub program: ProgramVersion,

    /// How many calls; Ctrl-C ends them and shows what those took that were answered
    #[arg(short = 'c', long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub count: u32,

    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub options: CallOptionArgs,
}

#[derive(Debug, Args)]
pub struct HealthArgs {
    /// tcp://HOST[:PORT], udp://HOST[:PORT], unix:///PATH or onc+xdp://HOST:PORT, or for the lean protocol
    /// lean+tcp://HOST[:PORT], lean+udp://HOST[:PORT], lean+unix:///PATH, shm:///PATH or xdp://HOST:PORT; where
    /// no port is said, rpcbind is asked
    pub address: String,

    /// The name of the service; without one the server as a whole
    #[arg(default_value = "", hide_default_value = true)]
    pub service: String,

    /// Show the status of every service
    #[arg(long, conflicts_with_all = ["service", "watch"])]
    pub list: bool,

    /// Show the status, and go on and show each that comes after it, until Ctrl-C
    #[arg(long)]
    pub watch: bool,

    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub options: CallOptionArgs,
}

#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Calls per procedure, transport and protocol
    #[arg(long, default_value_t = 5000, value_parser = clap::value_parser!(u32).range(100..=10_000_000))]
    pub calls: u32,

    /// Print the tables as JSON
    #[arg(long)]
    pub json: bool,

    /// How both ends wait
    #[arg(long, value_enum, default_value = "adaptive")]
    pub wait: WaitArg,

    /// Only serve, and print the addresses
    #[arg(long, conflicts_with_all = ["calls", "json"])]
    pub serve: bool,

    /// Serve at this address alone
    #[arg(long, value_name = "ADDRESS", requires = "serve", hide = true)]
    pub at: Option<String>,
}

/// A pair of metadata on the command line.
#[derive(Debug, Clone)]
pub struct MetadataPair {
    pub key: String,
    pub value: Vec<u8>,
}

fn parse_pair(text: &str) -> Result<MetadataPair, String> {
    let (key, value) = text
        .split_once('=')
        .ok_or_else(|| format!("`{text}` has no `=`; write KEY=VALUE"))?;
    let value = match key.ends_with("-bin") {
        false => value.as_bytes().to_vec(),
        true => hex_bytes(value).ok_or_else(|| {
            format!("`{value}` is not in pairs of hexadecimal digits, as in d07e")
        })?,
    };
    let mut metadata = Metadata::new();
    let checked = metadata.append(key, &value);
    checked.map_err(|error| error.to_string())?;
    let key = key.to_owned();
    Ok(MetadataPair { key, value })
}

fn hex_bytes(digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2);
    let bytes = pairs.map(|pair| match pair {
        [high, low] => {
            let [high, low] = [high, low].map(|digit| char::from(*digit).to_digit(16));
            u8::try_from(16 * high? + low?).ok()
        }
        _ => None,
    });
    bytes.collect()
}

fn parse_program(text: &str) -> Result<ProgramVersion, String> {
    let (program, version) = match text.split_once('.') {
        Some((program, version)) => (program, Some(parse_number(version)?)),
        None => (text, None),
    };
    Ok(ProgramVersion {
        program: parse_number(program)?,
        version,
    })
}

fn parse_number(text: &str) -> Result<u32, String> {
    let parsed = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| format!("`{text}` is not a 32-bit number; write 100003.3 or 0x186a3.3"))
}

/// Reads a time with its unit.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, unit) = text.split_at(split.unwrap_or(text.len()));
    let seconds = match unit {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" | "" => 1.0,
        "m" => 60.0,
        _ => return Err(format!("`{unit}` is not a unit; write 500ms, 5s or 2m")),
    };
    let number: f64 = number
        .parse()
        .map_err(|_| format!("`{text}` is not a time; write 500ms, 5s or 2m"))?;
    let duration = Duration::try_from_secs_f64(number * seconds).map_err(|e| e.to_string())?;
    if duration.is_zero() || duration > Duration::from_secs(86_400) {
        return Err("a timeout lies between 1us and 1440m".into());
    }
    Ok(duration)
}
