//! The server: a dispatcher for each version of each program, and `main`.

use super::declare::spaced;
use super::procedures::{StubSide, VersionedProcedure, has_record, procedures};
use super::{Interface, Options, Transport, heading, names};
use crate::writer::{HoleContent, SourceWriter};

/// The file of the server; empty if there are no programs.
pub fn write(of: Interface<'_>, options: &Options) -> String {
    if of.schema.programs.is_empty() {
        return String::new();
    }
    let file = ServerFile {
        of,
        options,
        has_main: !options.server.transports.is_empty(),
    };
    let mut w = SourceWriter::with_tabs();
    heading(&mut w, options);
    file.includes(&mut w);
    of.passthrough(&mut w);
    if file.is_inetd() {
        file.state(&mut w);
    }
    for procedure in procedures(of).filter(|_| options.by_value) {
        w.line("");
        file.unpack(&mut w, &procedure);
    }
    for version in file.versions() {
        w.line("");
        file.dispatcher(&mut w, &version);
    }
    if file.has_main {
        w.line("");
        file.main(&mut w);
    }
    w.finish()
}

struct ServerFile<'a> {
    of: Interface<'a>,
    options: &'a Options,
    has_main: bool,
}

/// A version of a program.
struct ServerVersion<'a> {
    program: &'a str,
    name: &'a str,
    dispatcher: String,
    procedures: Vec<VersionedProcedure<'a>>,
}

impl<'a> ServerFile<'a> {
    fn versions(&self) -> Vec<ServerVersion<'a>> {
        let programs = self.of.schema.programs.iter().enumerate();
        let versions = programs.flat_map(|(position, program)| {
            let versions = program.versions.iter().enumerate();
            versions.map(move |(index, version)| ServerVersion {
                program: &program.name,
                name: &version.name,
                dispatcher: self.of.dispatcher(position, index),
                procedures: procedures(self.of)
                    .filter(|of| (of.program, of.version) == (position, index))
                    .collect(),
            })
        });
        versions.collect()
    }

    fn is_inetd(&self) -> bool {
        self.options.server.inetd && self.has_main
    }

    fn includes(&self, w: &mut SourceWriter) {
        let mut headers = vec!["stdio.h", "stdlib.h", "rpc/pmap_clnt.h", "string.h"];
        if self.is_inetd() {
            headers.extend([
                "signal.h",
                "sys/types.h",
                "sys/stat.h",
                "fcntl.h",
                "unistd.h",
            ]);
        }
        headers.extend(["memory.h", "sys/socket.h", "netinet/in.h"]);
        if self.is_inetd() || self.options.server.syslog {
            headers.push("syslog.h");
        }
        w.line(format!("#include \"{}\"", self.options.header));
        for header in headers {
            w.line(format!("#include <{header}>"));
        }
        w.line("");
        w.line("#ifndef SIG_PF");
        w.line("#define SIG_PF void(*)(int)");
        w.line("#endif");
    }

    /// Writes the state of a server that inetd may start.
    fn state(&self, w: &mut SourceWriter) {
        let idle = self.options.server.idle_seconds;
        w.raw_text(
            "
static int _rpcpmstart;		/* Whether inetd has started this server */
static int _rpcfdtype;		/* What it was handed: a stream or datagrams */

static void
_msgout (const char *msg)
{
#ifdef RPC_SVC_FG
	if (!_rpcpmstart) {
		fprintf (stderr, \"%s\\n\", msg);
		return;
	}
#endif
	syslog (LOG_ERR, \"%s\", msg);
}
",
        );
        let Some(seconds) = idle else { return };
        w.line("");
        w.line(format!("#define _RPCSVC_CLOSEDOWN {seconds}"));
        w.raw_text(
            "
/* What the server does. */
#define	_IDLE 0
#define	_SERVED 1
#define	_SERVING 2

static volatile sig_atomic_t _rpcsvcstate = _IDLE;

/* Ends the server if it has been idle since the last time, and nobody is connected. */
static void
closedown (int sig)
{
	(void) sig;
	if (_rpcsvcstate == _IDLE) {
		int i, openfd;

		if (_rpcfdtype == SOCK_DGRAM)
			_exit (0);
		for (i = 0, openfd = 0; i < FD_SETSIZE && openfd < 2; i++)
			if (FD_ISSET (i, &svc_fdset))
				openfd++;
		if (openfd <= 1)
			_exit (0);
	}
	if (_rpcsvcstate == _SERVED)
		_rpcsvcstate = _IDLE;
	(void) signal (SIGALRM, (SIG_PF) closedown);
	(void) alarm (_RPCSVC_CLOSEDOWN);
}
",
        );
    }

    /// With `-N`: hands the values on that the arguments consist of.
    fn unpack(&self, w: &mut SourceWriter, procedure: &VersionedProcedure<'_>) {
        let (of, options) = (self.of, self.options);
        let name = procedure.c_name();
        let argument = match procedure.written.arguments.as_slice() {
            _ if has_record(procedure, options) => procedure.record_name(),
            [] => "void".to_owned(),
            [first, ..] => names::c_type(first),
        };
        let mut values: Vec<String> = match has_record(procedure, options) {
            true => {
                let fields = procedure.definition.arguments.iter();
                fields
                    .map(|field| format!("argp->{}", field.name))
                    .collect()
            }
            false => procedure.arguments().map(|_| "*argp".to_owned()).collect(),
        };
        let mut parameters = vec![format!("{}*argp", spaced(&argument))];
        if options.reentrant {
            parameters.push(format!("{}result", procedure.result_pointer(of)));
            values.push("result".to_owned());
        }
        parameters.push("struct svc_req *rqstp".to_owned());
        values.push("rqstp".to_owned());
        let returns = procedure.returns(of, options, StubSide::Server);
        w.line(format!("static {}", returns.trim_end()));
        w.line(format!("_{name} ({})", parameters.join(", ")));
        w.braces_below(|w| {
            if procedure.definition.arguments.is_empty() {
                w.line("(void) argp;");
            }
            w.line(format!("return ({name}_svc({}));", values.join(", ")));
        });
    }

    fn dispatcher(&self, w: &mut SourceWriter, version: &ServerVersion<'_>) {
        let linkage = match self.has_main {
            true => "static void",
            false => "void",
        };
        w.line(linkage);
        let parameters = "struct svc_req *rqstp, register SVCXPRT *transp";
        w.line(format!("{}({parameters})", version.dispatcher));
        w.braces_below(|w| {
            self.variables(w, version);
            w.line("");
            self.enter(w, "_SERVING");
            w.line("switch (rqstp->rq_proc) {");
            self.cases(w, version);
            w.line("default:");
            w.indented(|w| {
                w.line("svcerr_noproc (transp);");
                self.enter(w, "_SERVED");
                w.line("return;");
            });
            w.line("}");
            self.carry_out(w, version);
        });
    }

    /// Records the state of the server, if the idle timer reads it.
    fn enter(&self, w: &mut SourceWriter, state: &str) {
        if self.is_inetd() && self.options.server.idle_seconds.is_some() {
            w.line(format!("_rpcsvcstate = {state};"));
        }
    }

    fn variables(&self, w: &mut SourceWriter, version: &ServerVersion<'_>) {
        let arguments = version.procedures.iter().filter_map(|procedure| {
            let ty = match procedure.written.arguments.as_slice() {
                _ if has_record(procedure, self.options) => procedure.record_name(),
                [] => return None,
                [first, ..] => names::c_type(first),
            };
            Some(format!("{}{}_arg;", spaced(&ty), procedure.c_name()))
        });
        union(w, arguments.collect(), "argument");
        match self.options.reentrant {
            true => {
                let results = version.procedures.iter().filter_map(|procedure| {
                    let (_, spelling) = procedure.result()?;
                    let ty = names::c_type(spelling);
                    Some(format!("{}{}_res;", spaced(&ty), procedure.c_name()))
                });
                union(w, results.collect(), "result");
                w.line("bool_t retval;");
            }
            false => w.line("char *result;"),
        }
        w.line("xdrproc_t _xdr_argument, _xdr_result;");
        w.line(match self.options.reentrant {
            true => "bool_t (*local)(char *, void *, struct svc_req *);",
            false => "char *(*local)(char *, struct svc_req *);",
        });
    }

    fn cases(&self, w: &mut SourceWriter, version: &ServerVersion<'_>) {
        let has_null = version
            .procedures
            .iter()
            .any(|of| of.definition.number == 0);
        if !has_null {
            w.line("case NULLPROC:");
            w.indented(|w| {
                let void = names::cast_routine("xdr_void");
                w.line(format!(
                    "(void) svc_sendreply (transp, {void}, (char *) NULL);"
                ));
                self.enter(w, "_SERVED");
                w.line("return;");
            });
            w.line("");
        }
        for procedure in &version.procedures {
            let function = match self.options.by_value {
                true => format!("_{}", procedure.c_name()),
                false => format!("{}_svc", procedure.c_name()),
            };
            let cast = match self.options.reentrant {
                true => "bool_t (*)(char *, void *, struct svc_req *)",
                false => "char *(*)(char *, struct svc_req *)",
            };
            let argument = names::cast_routine(&procedure.argument_routine(self.options));
            let result = names::cast_routine(&procedure.result_routine());
            w.line(format!("case {}:", procedure.definition.name));
            w.indented(|w| {
                w.line(format!("_xdr_argument = {argument};"));
                w.line(format!("_xdr_result = {result};"));
                w.line(format!("local = ({cast}) {function};"));
                w.line("break;");
            });
            w.line("");
        }
    }

    fn carry_out(&self, w: &mut SourceWriter, version: &ServerVersion<'_>) {
        w.line("memset ((char *)&argument, 0, sizeof (argument));");
        if self.options.reentrant {
            w.line("memset ((char *)&result, 0, sizeof (result));");
        }
        w.line("if (!svc_getargs (transp, _xdr_argument, (caddr_t) &argument)) {");
        w.indented(|w| {
            w.line("svcerr_decode (transp);");
            self.enter(w, "_SERVED");
            w.line("return;");
        });
        w.line("}");
        match self.options.reentrant {
            true => {
                w.line("retval = (*local)((char *)&argument, (void *)&result, rqstp);");
                w.line("if (retval > 0 && !svc_sendreply(transp, _xdr_result, (char *)&result)) {");
            }
            false => {
                w.line("result = (*local)((char *)&argument, rqstp);");
                w.line("if (result != NULL && !svc_sendreply(transp, _xdr_result, result)) {");
            }
        }
        w.indented(|w| w.line("svcerr_systemerr (transp);"));
        w.line("}");
        w.line("if (!svc_freeargs (transp, _xdr_argument, (caddr_t) &argument)) {");
        w.indented(|w| {
            self.say(w, "unable to free arguments");
            w.line("exit (1);");
        });
        w.line("}");
        if self.options.reentrant {
            let free = format!("{}_freeresult", version.dispatcher);
            w.line(format!(
                "if (!{free} (transp, _xdr_result, (caddr_t) &result))"
            ));
            w.indented(|w| self.say(w, "unable to free results"));
        }
        self.enter(w, "_SERVED");
    }

    /// Writes a message to the log or to standard error.
    fn say(&self, w: &mut SourceWriter, what: &str) {
        w.line(match (self.is_inetd(), self.options.server.syslog) {
            (true, _) => format!("_msgout (\"{what}\");"),
            (false, true) => format!("syslog (LOG_ERR, \"%s\", \"{what}\");"),
            (false, false) => format!("fprintf (stderr, \"%s\", \"{what}\");"),
        });
    }

    fn main(&self, w: &mut SourceWriter) {
        w.line("int");
        w.line("main (void)");
        w.braces_below(|w| {
            w.line("register SVCXPRT *transp;");
            match self.is_inetd() {
                true => self.find_socket(w),
                false => {
                    w.line("");
                    if self.options.server.syslog {
                        self.open_log(w);
                    }
                    self.unset(w);
                }
            }
            for transport in &self.options.server.transports {
                w.line("");
                match self.is_inetd() {
                    true => self.listen_unless_other(w, *transport),
                    false => self.listen(w, *transport),
                }
            }
            w.line("");
            if self.is_inetd() && self.options.server.idle_seconds.is_some() {
                w.line("if (_rpcpmstart) {");
                w.indented(|w| {
                    w.line("(void) signal (SIGALRM, (SIG_PF) closedown);");
                    w.line("(void) alarm (_RPCSVC_CLOSEDOWN);");
                });
                w.line("}");
            }
            w.line("svc_run ();");
            self.say(w, "svc_run returned");
            w.line("exit (1);");
            w.line("/* NOTREACHED */");
        });
    }

    fn open_log(&self, w: &mut SourceWriter) {
        let stem = self.options.source.trim_end_matches(".x");
        let name = crate::writer::literal(stem);
        w.line(format!("openlog({name}, LOG_PID, LOG_DAEMON);"));
    }

    fn unset(&self, w: &mut SourceWriter) {
        for version in self.versions() {
            w.line(format!(
                "pmap_unset ({}, {});",
                version.program, version.name
            ));
        }
    }

    /// Takes the socket that inetd has opened, or goes to the background to open others.
    fn find_socket(&self, w: &mut SourceWriter) {
        w.skeleton(
            "
int sock;
int proto = 0;
struct sockaddr_in saddr;
socklen_t asize = sizeof (saddr);

if (getsockname (0, (struct sockaddr *)&saddr, &asize) == 0) {
    socklen_t ssize = sizeof (int);

    if (saddr.sin_family != AF_INET)
        exit (1);
    if (getsockopt (0, SOL_SOCKET, SO_TYPE, (char *)&_rpcfdtype, &ssize) == -1)
        exit (1);
    sock = 0;
    _rpcpmstart = 1;
    $log$
} else {
#ifndef RPC_SVC_FG
    if (daemon (0, 0) != 0) {
        perror (\"cannot go to the background\");
        exit (1);
    }
    $log$
#endif
    sock = RPC_ANYSOCK;
    $unset$
}
transp = NULL;
",
            &[
                ("log", HoleContent::Lines(&|w| self.open_log(w))),
                ("unset", HoleContent::Lines(&|w| self.unset(w))),
            ],
        );
    }

    fn listen_unless_other(&self, w: &mut SourceWriter, transport: Transport) {
        let kind = match transport {
            Transport::Udp => "SOCK_DGRAM",
            Transport::Tcp => "SOCK_STREAM",
        };
        let head = format!("if (!_rpcpmstart || _rpcfdtype == {kind})");
        w.braces(&head, |w| self.listen(w, transport));
    }

    fn listen(&self, w: &mut SourceWriter, transport: Transport) {
        let socket = match self.is_inetd() {
            true => "sock",
            false => "RPC_ANYSOCK",
        };
        let (word, create, number) = match transport {
            Transport::Udp => ("udp", format!("svcudp_create({socket})"), "IPPROTO_UDP"),
            Transport::Tcp => (
                "tcp",
                format!("svctcp_create({socket}, 0, 0)"),
                "IPPROTO_TCP",
            ),
        };
        w.line(format!("transp = {create};"));
        w.line("if (transp == NULL) {");
        w.indented(|w| {
            self.say(w, &format!("cannot create {word} service."));
            w.line("exit(1);");
        });
        w.line("}");
        if self.is_inetd() {
            w.line("if (!_rpcpmstart)");
            w.indented(|w| w.line(format!("proto = {number};")));
        }
        let proto = match self.is_inetd() {
            true => "proto",
            false => number,
        };
        for version in self.versions() {
            let (program, name) = (version.program, version.name);
            let dispatcher = &version.dispatcher;
            w.line(format!(
                "if (!svc_register(transp, {program}, {name}, {dispatcher}, {proto})) {{"
            ));
            w.indented(|w| {
                self.say(
                    w,
                    &format!("unable to register ({program}, {name}, {word})."),
                );
                w.line("exit(1);");
            });
            w.line("}");
        }
    }
}

/// Room for any one of what procedures take or return.
fn union(w: &mut SourceWriter, mut members: Vec<String>, name: &str) {
    if members.is_empty() {
        members.push("int fill;".to_owned());
    }
    w.line("union {");
    w.indented(|w| members.iter().for_each(|member| w.line(member)));
    w.line(format!("}} {name};"));
}
