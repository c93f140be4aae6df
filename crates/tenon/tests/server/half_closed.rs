//! A server that stops is sent calls on and on: its last replies arrive all the same.

use std::thread;
use std::time::Duration;

use crate::common::gate;
use crate::common::half_closed::{StubbornClient, assert_first_is_answered};
use crate::common::restarts::{PROGRAM, Place, VERSION};

const ECHO: u32 = 1;
const HOLD: u32 = 2;

#[test]
fn the_reply_of_a_running_call_arrives_whatever_its_client_sends_meanwhile() {
    let place = Place::fresh();
    let server = place.start(|procedure, arguments| {
        if procedure == HOLD {
            gate::hold(u32::from_be_bytes(arguments.try_into().unwrap()));
        }
        Ok(arguments.to_vec())
    });
    let mut client = StubbornClient::connect(&place.tcp["tcp://".len()..], [PROGRAM, VERSION]);
    let gate = gate::fresh_gate();
    client.call(HOLD, &gate.to_be_bytes());
    while server.counters().calls < 1 {
        thread::sleep(Duration::from_millis(1));
    }
    thread::scope(|scope| {
        let stopping = scope.spawn(|| server.shutdown(Duration::from_secs(60)));
        while std::net::TcpStream::connect(&place.tcp["tcp://".len()..]).is_ok() {
            thread::sleep(Duration::from_millis(1));
        }
        let replies = client.receive_all();
        client.send_on(ECHO);
        gate::open(gate);
        assert_first_is_answered(&replies.join().unwrap(), &gate.to_be_bytes());
        stopping.join().unwrap();
    });
}
