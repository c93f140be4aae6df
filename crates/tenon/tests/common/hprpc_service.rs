//! Calls by generated stubs of the same kind again and again, for what counts their costs.

use tenon::{CallInfo, MakeCalls, Refusal, Server};

use crate::common::caller::listening;
use crate::hprpc::{
    HprpcVersion, HprpcVersionClient, HprpcVersionService, LargeData, Numbers, Packet,
};
use tenon::wire::BString;

pub struct Hprpc;

impl HprpcVersion for Hprpc {
    fn say_hello(&self, _: &CallInfo<'_>, name: BString) -> Result<BString, Refusal> {
        Ok(name)
    }

    fn average(&self, _: &CallInfo<'_>, _: Numbers) -> Result<f64, Refusal> {
        Ok(0.5)
    }

    fn get_rand_nums(&self, _: &CallInfo<'_>, _: u32) -> Result<Numbers, Refusal> {
        Ok(Numbers::new())
    }

    fn send_rcv_large_data(&self, _: &CallInfo<'_>, data: LargeData) -> Result<LargeData, Refusal> {
        Ok(data)
    }

    fn max_result(&self, _: &CallInfo<'_>) -> Result<Packet, Refusal> {
        Ok([7; 1440])
    }
}

/// A server on every transport.
pub fn server() -> Server {
    let builder = listening().service(HprpcVersionService(Hprpc));
    builder.start().unwrap()
}

/// Every address of a server, of streams those by the lean protocol, too.
pub fn addresses(server: &Server) -> Vec<String> {
    let addresses = server.addresses().iter().map(ToString::to_string);
    let both = addresses.flat_map(|address| match address.starts_with("udp") {
        true => vec![address],
        false => vec![format!("lean+{address}"), address],
    });
    both.collect()
}

/// Makes by turns an empty call, one with a large result, and one that is large both ways.
pub fn call<C: MakeCalls>(client: &HprpcVersionClient<C>, number: u32) {
    match number % 3 {
        0 => client.null_call().unwrap(),
        1 => assert_eq!(client.max_result().unwrap(), [7; 1440]),
        _ => {
            let data = LargeData {
                member128: number as i32,
                ..LargeData::default()
            };
            assert_eq!(client.send_rcv_large_data(&data).unwrap(), data);
        }
    }
}
