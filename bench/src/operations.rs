//! The operations as Tenon's servers serve them, and where those listen.

use tenon::{CallInfo, Refusal};
use tenon_bench_common::operation::{fill_max_result, greeting, rand_nums};

use crate::stubs::{
    BenchVersion, LargeData128, LargeData1024, LargeData4096, LargeData8192, Numbers, Packet, Text,
};

/// The operations.
#[derive(Debug)]
pub struct Operations;

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

    /// Puts the metadata of the call, if it has any, on its reply.
    fn say_hello(&self, call: &CallInfo<'_>, name: Text) -> Result<Text, Refusal> {
        for (key, value) in call.metadata() {
            call.append_reply_metadata(key, value)?;
        }
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

/// Where a server listens that was told `tcp`, `udp`, `unix=PATH` or `shm=PATH`.
pub fn listen_url(transport: &str) -> String {
    match transport.split_once('=') {
        Some((transport, path)) => format!("{transport}://{path}"),
        None => format!("{transport}://127.0.0.1:0"),
    }
}

/// `tcp://127.0.0.1:1234` as clients take it: `tcp 127.0.0.1 1234`.
pub fn as_arguments(url: &str) -> String {
    match url.split_once("://") {
        Some((transport @ ("unix" | "shm"), path)) => format!("{transport} {path}"),
        Some((transport, socket)) => format!("{transport} {}", socket.replace(':', " ")),
        None => url.to_owned(),
    }
}
