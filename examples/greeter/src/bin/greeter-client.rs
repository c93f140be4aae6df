//! Calls the greeter at the address given.

use std::time::Duration;

use tenon_example_greeter::greeter::{GreeterV1Client, Greeting, Visitor};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1);
    let address = address.as_deref().unwrap_or("tcp://127.0.0.1:4711");
    let greeter = GreeterV1Client::connect(address)?.with_timeout(Duration::from_secs(5));

    // One call, and then several that are in flight together.
    let ada = Visitor {
        name: "Ada".into(),
        visits: 1,
    };
    println!("{:?}", greeter.greet(&ada)?);

    let mut pending = Vec::new();
    for visits in 0..3 {
        let visitor = Visitor {
            name: "Charles".into(),
            visits,
        };
        pending.push(greeter.start_greet(&visitor)?);
    }
    for call in pending {
        match call.wait()? {
            Greeting::Text(text) => println!("{text}"),
            Greeting::Void => println!("(a stranger)"),
        }
    }
    Ok(())
}
