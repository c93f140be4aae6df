//! A server of tasks that stops is sent calls on and on: its last replies arrive all the same.

use std::time::Duration;

use crate::common::gate;
use crate::common::half_closed::{StubbornClient, assert_first_is_answered};
use crate::common::obliging::{
    ECHO, HOLD, PATIENCE, PROGRAM, VERSION, listening_in_tasks, obliging,
};
use tokio::task::spawn_blocking;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_reply_of_a_running_call_arrives_whatever_its_client_sends_meanwhile() {
    let server = listening_in_tasks().sync_service(obliging());
    let server = server.start().await.unwrap();
    let address = server.addresses()[0].to_string()["tcp://".len()..].to_owned();
    let mut client = StubbornClient::connect(&address, [PROGRAM, VERSION]);
    let gate = gate::fresh_gate();
    client.call(HOLD.into(), &gate.to_be_bytes());
    while server.counters().calls < 1 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let talk = spawn_blocking(move || {
        while std::net::TcpStream::connect(&address).is_ok() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let replies = client.receive_all();
        client.send_on(ECHO.into());
        gate::open(gate);
        assert_first_is_answered(&replies.join().unwrap(), &gate.to_be_bytes());
    });
    server.shutdown(PATIENCE).await;
    talk.await.unwrap();
}
