//! The operations of the section `rpc`, served by Tenon.
//!
//! usage: `tenon_server block|spin|adaptive tcp|udp|unix=PATH`

use std::error::Error;

use tenon::{CallInfo, Refusal, Server, Waiting};
use tenon_bench::end_with_parent;
use tenon_bench::stubs::{
    BenchVersion, BenchVersionService, LargeData128, LargeData1024, LargeData4096, LargeData8192,
    Numbers, Packet, Text,
};
use tenon_bench_common::operation::{fill_max_result, greeting, rand_nums};

struct Operations;

impl BenchVersion for Operations {
    fn max_result(&self, _: &CallInfo<'_>, reply: &mut Packet) -> Result<(), Refusal> {
        fill_max_result(reply);
        Ok(())
    }

    fn average(&self, _: &CallInfo<'_>, numbers: Numbers) -> Result<f64, Refusal> {
        let sum: i64 = numbers.iter().map(|number| i64::from(*number)).sum();
        Ok(sum as f64 / numbers.len().max(1) as f64)
    }

    fn get_rand_nums(&self, _: &CallInfo<'_>, count: u32) -> Result<Numbers, Refusal> {
        Ok(rand_nums(count))
    }

    fn say_hello(&self, _: &CallInfo<'_>, name: Text) -> Result<Text, Refusal> {
        Ok(greeting(&name).into())
    }

    fn large128(
        &self,
        _: &CallInfo<'_>,
        data: LargeData128,
        reply: &mut LargeData128,
    ) -> Result<(), Refusal> {
        *reply = data;
        Ok(())
    }

    fn large1024(
        &self,
        _: &CallInfo<'_>,
        data: LargeData1024,
        reply: &mut LargeData1024,
    ) -> Result<(), Refusal> {
        *reply = data;
        Ok(())
    }

    fn large4096(
        &self,
        _: &CallInfo<'_>,
        data: LargeData4096,
        reply: &mut LargeData4096,
    ) -> Result<(), Refusal> {
        *reply = data;
        Ok(())
    }

    fn large8192(
        &self,
        _: &CallInfo<'_>,
        data: LargeData8192,
        reply: &mut LargeData8192,
    ) -> Result<(), Refusal> {
        *reply = data;
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    end_with_parent()?;
    let arguments: Vec<String> = std::env::args().collect();
    let [_, waiting, transport] = &arguments[..] else {
        return Err("usage: tenon_server block|spin|adaptive tcp|udp|unix=PATH".into());
    };
    let listen = match transport.strip_prefix("unix=") {
        Some(path) => format!("unix://{path}"),
        None => format!("{transport}://127.0.0.1:0"),
    };
    let server = Server::builder()
        .listen(&listen)?
        .service(BenchVersionService(Operations))
        .waiting(waiting.parse::<Waiting>()?)
        .start()?;
    println!(
        "{}\nready",
        as_arguments(&server.addresses()[0].to_string())
    );
    server.wait();
    Ok(())
}

/// `tcp://127.0.0.1:1234` as clients take it: `tcp 127.0.0.1 1234`.
fn as_arguments(url: &str) -> String {
    match url.split_once("://") {
        Some(("unix", path)) => format!("unix {path}"),
        Some((transport, socket)) => format!("{transport} {}", socket.replace(':', " ")),
        None => url.to_owned(),
    }
}
