//! Two networks with Ethernets between them, veth pairs: one for what goes past the kernel, and one for what it is
//! compared with, whose frames would meet the filter on the other.

use std::error::Error;
use std::process::Command;

type Outcome = Result<(), Box<dyn Error>>;

/// Where a server listens past the kernel.
pub const PAST_KERNEL: &str = "198.18.0.2:0";
/// Where one listens that takes the kernel's way.
pub const BY_KERNEL: &str = "198.18.1.2:0";

/// Both networks, which go when this is dropped.
#[derive(Debug)]
pub struct Networks(());

/// One of them, by its name.
pub fn name(role: &str) -> String {
    format!("tenon-bench-{}-{role}", std::process::id())
}

/// What runs a command in one of them.
pub fn inside(role: &str) -> Vec<String> {
    let network = format!("--net=/run/netns/{}", name(role));
    vec!["nsenter".to_owned(), network]
}

impl Networks {
    /// Makes both.
    ///
    /// # Errors
    /// It is not allowed.
    pub fn make() -> Result<Networks, Box<dyn Error>> {
        let (client, server) = (name("client"), name("server"));
        ip(&format!("netns add {client}"))?;
        // From here on both are removed, whatever fails.
        let networks = Networks(());
        ip(&format!("netns add {server}"))?;
        for pair in [0, 1] {
            let link = format!("-n {client} link add eth{pair} type veth");
            ip(&format!("{link} peer name eth{pair} netns {server}"))?;
            for (network, end) in [(&client, 1), (&server, 2)] {
                let address = format!("198.18.{pair}.{end}/24");
                ip(&format!("-n {network} address add {address} dev eth{pair}"))?;
                ip(&format!("-n {network} link set eth{pair} up"))?;
            }
        }
        Ok(networks)
    }
}

impl Drop for Networks {
    fn drop(&mut self) {
        for role in ["client", "server"] {
            // One that was not made need not be removed.
            let _ = ip(&format!("netns del {}", name(role)));
        }
    }
}

fn ip(arguments: &str) -> Outcome {
    let output = Command::new("ip").args(arguments.split(' ')).output()?;
    match output.status.success() {
        true => Ok(()),
        false => {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(format!("ip {arguments}: {}", said.trim()).into())
        }
    }
}
