//! The greeter of the README as tasks: a server and its client.

use tenon::{CallInfo, Refusal};

tenon::stubs!(
    mod greeter;
);
use greeter::{GreeterV1, GreeterV1AsyncClient, GreeterV1Service, Greeting, Visitor};

struct Host;

impl GreeterV1 for Host {
    fn greet(&self, _call: &CallInfo<'_>, visitor: Visitor) -> Result<Greeting, Refusal> {
        Ok(match visitor.visits {
            0 => Greeting::Void,
            _ => Greeting::Text(format!("Welcome back, {}", visitor.name).into()),
        })
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let builder = tenon::Server::builder()
        .listen("tcp://127.0.0.1:0")?
        .service(GreeterV1Service(Host));
    let server = tenon_tokio::Server::start(builder).await?;
    let address = server.addresses()[0].to_string();

    let client = GreeterV1AsyncClient::connect(&address).await?;
    let visitor = |name: &str, visits| Visitor {
        name: name.into(),
        visits,
    };
    let (ada, charles) = (visitor("Ada", 1), visitor("Charles", 0));
    // Both calls are in flight together, over one connection.
    let (known, stranger) = tokio::join!(client.greet(&ada), client.greet(&charles));
    println!("{:?}, {:?}", known?, stranger?);
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_calls_come_back_with_results() {
        super::main().expect("both calls have results");
    }

    #[test]
    fn the_readme_shows_this_file() {
        let readme = include_str!("../../../README.md");
        let mut blocks = readme
            .split("```")
            .filter(|block| block.starts_with("rust\n"));
        let shown = blocks.find(|block| block.contains("GreeterV1AsyncClient"));
        let shown = shown.expect("the README has an example of tasks");
        // rustfmt spreads the macro over several lines, and the README has it on one.
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let shown = words(shown.trim_start_matches("rust\n"));
        let shown = shown.replace("stubs!(mod greeter;);", "stubs!( mod greeter; );");
        assert!(words(include_str!("main.rs")).contains(&shown), "{shown}");
    }
}
