//! Our own servers of the shared interfaces.

use std::path::Path;

use tenon::{CallInfo, Refusal, Server, ServerBuilder};

use crate::compiled::hprpc::{self, HprpcVersion, HprpcVersionService, LargeData};
use crate::compiled::torture::{self as t, TortureVersion, TortureVersionService};
use crate::compiled::torture::{TortureVersionThree, TortureVersionThreeService};
use crate::peers::PeerAddresses;
use tenon::wire::BString;

/// Serves every shared interface on TCP, UDP and the Unix socket `path`.
///
/// # Panics
/// If a socket cannot be opened.
pub fn serve(path: &Path) -> (Server, PeerAddresses) {
    let server = listening(path)
        .service(HprpcVersionService(HprpcService))
        .service(TortureVersionService(TortureService))
        .service(TortureVersionThreeService(TortureService))
        .start()
        .expect("the server starts");
    let addresses = PeerAddresses::from_urls(server.addresses());
    (server, addresses)
}

/// Returns a builder that listens on TCP, UDP and the Unix socket `path`, and serves nothing.
///
/// # Panics
/// Never: these are addresses.
pub fn listening(path: &Path) -> ServerBuilder {
    let listen = |builder: ServerBuilder, address: &str| builder.listen(address);
    ["tcp://127.0.0.1:0", "udp://127.0.0.1:0"]
        .into_iter()
        .chain([format!("unix://{}", path.display()).as_str()])
        .try_fold(Server::builder(), listen)
        .expect("these are addresses")
}

/// Returns the sequence that `hprpc.x` prescribes.
pub fn rand_nums(count: u32) -> Vec<i32> {
    let mut x = 1_u32;
    let next = |_| {
        x = x.wrapping_mul(1_103_515_245).wrapping_add(12345) & 0x7fff_ffff;
        x as i32
    };
    (0..count).map(next).collect()
}

/// The operations of `hprpc.x`.
#[derive(Debug, Clone, Copy)]
pub struct HprpcService;

impl HprpcVersion for HprpcService {
    fn say_hello(&self, _: &CallInfo<'_>, name: BString) -> Result<BString, Refusal> {
        let mut greeting = BString::from("Hello ");
        greeting.extend_from_slice(&name);
        Ok(greeting)
    }

    fn average(&self, _: &CallInfo<'_>, numbers: hprpc::Numbers) -> Result<f64, Refusal> {
        let sum: i64 = numbers.iter().map(|number| i64::from(*number)).sum();
        Ok(sum as f64 / numbers.len().max(1) as f64)
    }

    fn get_rand_nums(&self, _: &CallInfo<'_>, count: u32) -> Result<hprpc::Numbers, Refusal> {
        Ok(rand_nums(count))
    }

    fn send_rcv_large_data(&self, _: &CallInfo<'_>, data: LargeData) -> Result<LargeData, Refusal> {
        Ok(data)
    }

    fn max_result(&self, _: &CallInfo<'_>) -> Result<hprpc::Packet, Refusal> {
        Ok(std::array::from_fn(|at| at as u8))
    }
}

/// The operations of `torture.x`.
#[derive(Debug, Clone, Copy)]
pub struct TortureService;

/// Procedures that return their argument.
macro_rules! echo {
    ($($name:ident: $type:ty),* $(,)?) => {
        $(fn $name(&self, _: &CallInfo<'_>, value: $type) -> Result<$type, Refusal> {
            Ok(value)
        })*
    };
}

impl TortureVersion for TortureService {
    echo! {
        echo_int: i32,
        echo_uint: u32,
        echo_hyper: i64,
        echo_uhyper: u64,
        echo_float: f32,
        echo_double: f64,
        echo_bool: bool,
        echo_string: BString,
        echo_short: i16,
        echo_uchar: u8,
        echo_temperature: t::Temperature,
        echo_scalars: t::Scalars,
        echo_small_scalars: t::SmallScalars,
        echo_fixed_opaques: t::FixedOpaques,
        echo_counted_opaques: t::CountedOpaques,
        echo_strings: t::Strings,
        echo_drawing: t::Drawing,
        echo_holes: t::Holes,
        echo_fixed_arrays: t::FixedArrays,
        echo_counted_arrays: t::CountedArrays,
        echo_small_arrays: t::SmallArrays,
        echo_ragged: t::Ragged,
        echo_blob: t::Blob,
        echo_words: t::Words,
        echo_shade: t::Shade,
        echo_weather: t::Weather,
        echo_by_int: t::ByInt,
        echo_by_uint: t::ByUint,
        echo_by_bool: t::ByBool,
        echo_nested_union: t::NestedUnion,
        echo_optionals: t::Optionals,
        echo_node_list: t::NodeList,
        echo_two_lists: t::TwoLists,
        echo_group: Vec<t::Group>,
        echo_tree: Vec<t::Tree>,
        echo_directory: t::Directory,
        echo_expression: t::Expression,
        echo_everything: t::Everything,
    }

    fn answer(&self, _: &CallInfo<'_>) -> Result<i32, Refusal> {
        Ok(42)
    }

    fn swallow(&self, _: &CallInfo<'_>, _: i32) -> Result<(), Refusal> {
        Ok(())
    }

    fn add(&self, _: &CallInfo<'_>, left: i32, right: i32) -> Result<i32, Refusal> {
        Ok(left.wrapping_add(right))
    }

    fn assemble(
        &self,
        _: &CallInfo<'_>,
        title: t::Text,
        pixels: t::Blob,
        ink: t::Color,
        line: t::Line,
    ) -> Result<t::Drawing, Refusal> {
        Ok(t::Drawing {
            first: line,
            title,
            second: line,
            ink,
            pixels,
            created: 0,
        })
    }

    fn produce(&self, _: &CallInfo<'_>, count: u32) -> Result<t::Blob, Refusal> {
        Ok((0..count).map(|at| (at % 251) as u8).collect())
    }
}

impl TortureVersionThree for TortureService {
    fn answer_three(&self, _: &CallInfo<'_>) -> Result<i32, Refusal> {
        Ok(42)
    }
}
