//! Clients, a server and the network between them: what happens to them, and what must hold whatever does.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tenon_proto::connection::{
    CallDraft, Caller, LeanCall, ReplyDraft, ReplyError, ServiceTable, StartError,
};
use tenon_proto::endpoint::{
    CallFailure, ClientEndpoint, DatagramCallId, DatagramCallKey, ServerEndpoint,
};
use tenon_proto::exchange::client::ClientEngine;
use tenon_proto::exchange::server::ServerLimits;
use tenon_proto::exchange::{Failure, Reason, ReassembledMessage};
use tenon_proto::lean::{ByteOrder, Interface, Preamble, Status};
use tenon_wire::Buffer;

use super::Plan;
use crate::common::Random;
use crate::exchange::support::{
    ORDERS, address, client_endpoint, known, request, server_address, server_endpoint, services,
};
use crate::network::{Datagram, Faults, Network};

/// For how long at most an answer is under way over a quiet network: until it is sent again, and asks, which is no
/// later than any timer.
const ARRIVES_WITHIN: Duration = Duration::from_secs(15);

/// What became of a call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Outcome {
    Answered,
    Refused(Status),
    Failed(Failure),
    Cancelled,
}

pub struct Call {
    client: usize,
    id: DatagramCallId,
    deadline: Instant,
    answer_bytes: usize,
    seed: u64,
    executed: u32,
    pub outcome: Option<Outcome>,
}

struct Running {
    key: DatagramCallKey<SocketAddr>,
    caller: Caller,
    call: usize,
    until: Instant,
}

pub struct Client {
    pub endpoint: ClientEndpoint<usize>,
    order: ByteOrder,
    address: SocketAddr,
}

impl Client {
    /// What it knows of the packet exchange.
    pub fn conversation(&self) -> &ClientEngine<usize> {
        self.endpoint.conversation().expect("no client of ONC RPC")
    }
}

pub struct World {
    plan: Plan,
    random: Random,
    now: Instant,
    pub network: Network,
    pub clients: Vec<Client>,
    server: ServerEndpoint<SocketAddr>,
    limits: ServerLimits,
    incarnation: u32,
    services: ServiceTable,
    running: Vec<Running>,
    pub calls: Vec<Call>,
    datagram: Buffer,
    /// A call or an answer that came in several packets.
    whole: ReassembledMessage,
}

/// What a call of this seed carries beside its number: the other end knows it, too.
fn content(seed: u64, bytes: usize) -> Vec<u8> {
    let mut random = Random(seed);
    let words = std::iter::repeat_with(|| random.next().to_be_bytes());
    words
        .take(bytes.div_ceil(8))
        .flatten()
        .take(bytes)
        .collect()
}

impl World {
    pub fn new(plan: Plan) -> Self {
        let mut random = Random(plan.seed);
        let now = Instant::now();
        let limits = ServerLimits {
            conversations: 40,
            bytes_of_conversation: plan.room / 4 * 3,
            bytes_of_host: plan.room / 4 * 3,
            bytes: plan.room,
            ..ServerLimits::default()
        };
        let client = |index: usize| {
            let order = ORDERS[random.below(2)];
            Client {
                endpoint: client_endpoint(order, random.next()),
                order,
                address: address(2 + index as u8, 1000),
            }
        };
        let clients = (0..plan.clients).map(client).collect();
        Self {
            plan,
            now,
            network: Network::new(plan.faults),
            clients,
            server: server_endpoint(ORDERS[random.below(2)], limits, 1, now),
            limits,
            incarnation: 1,
            services: services(),
            running: Vec::new(),
            calls: Vec::new(),
            datagram: Buffer::default(),
            whole: ReassembledMessage::new(&Preamble::client(64 << 20)),
            random,
        }
    }

    pub fn run(&mut self) {
        let mut steps = 0_u64;
        while self.calls.len() < self.plan.calls || self.open_calls() > 0 {
            steps += 1;
            assert!(steps < 20_000_000, "it does not end");
            self.act();
            self.exchange();
        }
    }

    fn open_calls(&self) -> usize {
        self.calls
            .iter()
            .filter(|call| call.outcome.is_none())
            .count()
    }

    /// What happens at both ends between packets.
    fn act(&mut self) {
        match self.random.below(1000) as u32 {
            n if n < self.plan.restarts => self.restart(),
            n if n < self.plan.restarts + self.plan.moves => self.move_client(),
            n if n < self.plan.restarts + self.plan.moves + self.plan.cancels => self.give_up(),
            n if n < 500 => self.start_call(),
            _ => {}
        }
    }

    fn start_call(&mut self) {
        let busy = self
            .clients
            .iter()
            .map(|client| client.endpoint.in_flight());
        if self.calls.len() >= self.plan.calls || busy.sum::<usize>() >= self.plan.in_flight {
            return;
        }
        let which = self.random.below(self.clients.len());
        let bytes = match self.random.below(self.plan.one_large_in) {
            0 => self.random.below(self.plan.bytes_max),
            _ => self.random.of_bits(10),
        };
        let answer_bytes = match self.random.below(self.plan.one_large_in) {
            0 => self.random.below(self.plan.bytes_max),
            _ => self.random.of_bits(10),
        };
        // What the server takes is not known yet.
        let knows_limits = self.clients[which].endpoint.peer().is_some();
        let bytes = if knows_limits { bytes } else { bytes % 1000 };
        let number = self.calls.len();
        let seed = self.random.next();
        let mut arguments = (number as u64).to_be_bytes().to_vec();
        arguments.extend(seed.to_be_bytes());
        arguments.extend((bytes as u64).to_be_bytes());
        arguments.extend(content(seed, bytes));
        let client = &mut self.clients[which];
        let version = [5, 5, 5, 2][self.random.below(4)];
        let interface = match version {
            5 => known(5),
            version => Arc::new(Interface::unknown(300, version)),
        };
        let (mut message, draft) = request(client.order, 7, &arguments);
        let limit = Duration::from_millis(self.random.below(self.plan.deadline_s * 1000) as u64);
        let deadline = self.now + limit;
        let draft = CallDraft::Lean(LeanCall {
            draft,
            interface: &interface,
            procedure: 7,
        });
        let endpoint = &mut client.endpoint;
        match endpoint.start_call(self.now, &draft, &mut message, deadline, number) {
            Ok(id) => self.calls.push(Call {
                client: which,
                id,
                deadline,
                answer_bytes,
                seed,
                executed: 0,
                outcome: None,
            }),
            Err(StartError::TooManyCalls { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }

    fn give_up(&mut self) {
        let open: Vec<usize> = (0..self.calls.len())
            .filter(|number| self.calls[*number].outcome.is_none())
            .collect();
        if open.is_empty() {
            return;
        }
        let number = open[self.random.below(open.len())];
        let call = &self.calls[number];
        let endpoint = &mut self.clients[call.client].endpoint;
        assert_eq!(endpoint.cancel(call.id), Some(number));
        self.settle(number, Outcome::Cancelled);
    }

    fn restart(&mut self) {
        self.incarnation += 1;
        self.running.clear();
        let order = ORDERS[self.random.below(2)];
        self.server = server_endpoint(order, self.limits, self.incarnation, self.now);
    }

    fn move_client(&mut self) {
        let which = self.random.below(self.clients.len());
        let client = &mut self.clients[which];
        client.address.set_port(client.address.port() + 1);
    }

    /// Sends all that there is to send, and goes to the next moment at which something happens.
    fn exchange(&mut self) {
        self.transmit();
        let next = [
            self.network.next_arrival(),
            self.server.poll_timeout(),
            self.running.iter().map(|running| running.until).min(),
        ];
        let clients = self.clients.iter();
        let clients = clients.filter_map(|client| client.endpoint.poll_timeout());
        let next = next.into_iter().flatten().chain(clients).min();
        let pause = Duration::from_micros(self.random.of_bits(14) as u64);
        self.now = self.now.max(next.unwrap_or(self.now).min(self.now + pause));
        self.answer();
        while let Some(datagram) = self.network.receive(self.now) {
            self.receive(&datagram);
        }
        self.let_time_pass();
        self.check_bounds();
    }

    fn transmit(&mut self) {
        for index in 0..self.clients.len() {
            loop {
                self.datagram.clear();
                let client = &mut self.clients[index];
                if !client.endpoint.poll_transmit(self.now, &mut self.datagram) {
                    break;
                }
                let datagram = Datagram {
                    from: client.address,
                    to: server_address(),
                    bytes: self.datagram.as_slice().to_vec(),
                    is_tainted: false,
                };
                assert!(datagram.bytes.len() <= 1448);
                self.network.send(&mut self.random, self.now, datagram);
            }
        }
        loop {
            self.datagram.clear();
            let Some(to) = self.server.poll_transmit(self.now, &mut self.datagram) else {
                break;
            };
            let datagram = Datagram {
                from: server_address(),
                to,
                bytes: self.datagram.as_slice().to_vec(),
                is_tainted: false,
            };
            self.network.send(&mut self.random, self.now, datagram);
        }
    }

    fn receive(&mut self, datagram: &Datagram) {
        if datagram.to == server_address() {
            return self.serve(datagram);
        }
        let mut clients = self.clients.iter_mut();
        let Some(client) = clients.find(|client| client.address == datagram.to) else {
            return;
        };
        let endpoint = &mut client.endpoint;
        let answer = endpoint.handle_datagram(self.now, &datagram.bytes, &mut self.whole);
        let Some(answer) = answer else {
            return;
        };
        let number = answer.waiter;
        let outcome = match answer.outcome {
            Ok(result) => {
                let call = &self.calls[number];
                let expected = content(!call.seed, call.answer_bytes);
                assert!(result == expected, "a wrong result of call {number}");
                Outcome::Answered
            }
            Err(ReplyError::Exception(exception)) => Outcome::Refused(exception.status),
            Err(other) => panic!("{other:?}"),
        };
        self.settle(number, outcome);
    }

    fn serve(&mut self, datagram: &Datagram) {
        let request = self.server.handle_datagram(
            self.now,
            datagram.from,
            &datagram.bytes,
            &self.services,
            &mut self.whole,
        );
        let Some(request) = request else { return };
        let arguments = request.call.arguments;
        let word = |at: usize| u64::from_be_bytes(arguments[at..at + 8].try_into().unwrap());
        let (number, seed, bytes) = (word(0) as usize, word(8), word(16) as usize);
        assert_eq!(request.call.procedure, 7);
        assert!(arguments[24..] == content(seed, bytes), "wrong arguments");
        let call = &mut self.calls[number];
        call.executed += 1;
        assert_eq!(call.executed, 1, "call {number} was executed again");
        let busy = match self.random.below(10) {
            0 => self.random.of_bits(24),
            1..4 => self.random.of_bits(15),
            _ => 0,
        };
        self.running.push(Running {
            key: request.key,
            caller: request.call.caller,
            call: number,
            until: self.now + Duration::from_micros(busy as u64),
        });
    }

    fn answer(&mut self) {
        let mut done = Vec::new();
        let now = self.now;
        self.running.retain(|running| {
            let is_done = running.until <= now;
            if is_done {
                done.push((running.key, running.caller, running.call));
            }
            !is_done
        });
        for (key, caller, number) in done {
            let call = &self.calls[number];
            let mut message = Buffer::default();
            let reply = ReplyDraft::begin(&mut message, caller);
            message.extend(&content(!call.seed, call.answer_bytes));
            reply.seal(&mut message);
            self.server.answer(self.now, key, &mut message).unwrap();
            assert!(message.is_empty());
        }
    }

    fn let_time_pass(&mut self) {
        for index in 0..self.clients.len() {
            self.clients[index].endpoint.handle_timeout(self.now);
            while let Some(failed) = self.clients[index].endpoint.poll_failure() {
                let CallFailure::Exchange(failure) = failed.failure else {
                    panic!("no call of ONC RPC");
                };
                if failure.reason == Reason::Expired {
                    assert!(self.calls[failed.waiter].deadline <= self.now);
                }
                self.settle(failed.waiter, Outcome::Failed(failure));
            }
        }
        self.server.handle_timeout(self.now);
        while let Some(key) = self.server.poll_cancelled() {
            // Half of the services notice.
            let now = self.now;
            let is_seen = self.random.below(2) == 0;
            let running = self.running.iter_mut();
            for running in running.filter(|running| is_seen && running.key == key) {
                running.until = now;
            }
        }
    }

    fn settle(&mut self, number: usize, outcome: Outcome) {
        let call = &mut self.calls[number];
        let before = call.outcome.replace(outcome);
        assert_eq!(before, None, "call {number} ended twice");
    }

    fn check_bounds(&self) {
        let limits = &self.limits;
        // A fragment is let in by its length, and may be given memory that another message left behind: at most
        // twice what its message needs.
        let slack = 2 * self.plan.bytes_max;
        let server = self.server.conversations();
        let bytes = server.bytes();
        assert!(bytes <= limits.bytes + slack, "{bytes} bytes");
        assert!(server.conversations() <= limits.conversations);
        for call in self.calls.iter().filter(|call| call.outcome.is_none()) {
            assert!(
                call.deadline + Duration::from_secs(1) > self.now,
                "it hangs"
            );
        }
    }

    /// Nothing begins any more, the network is quiet again, and all state goes.
    pub fn end(&mut self) {
        self.network.faults = Faults::default();
        self.rest(300);
        for call in &self.calls {
            match call.outcome.expect("every call ends") {
                Outcome::Answered => assert_eq!(call.executed, 1),
                Outcome::Failed(failure) if !failure.may_have_run => {
                    assert_eq!(call.executed, 0, "{failure}");
                }
                Outcome::Refused(status) => assert_eq!(status, Status::TOO_LARGE),
                Outcome::Failed(_) | Outcome::Cancelled => assert!(call.executed <= 1),
            }
        }
        let server = self.server.conversations();
        assert_eq!((server.conversations(), server.bytes()), (0, 0));
        for client in &self.clients {
            let conversation = client.conversation();
            assert_eq!(conversation.lanes_in_use(), 0);
            assert_eq!(conversation.in_flight(), 0);
            assert_eq!(conversation.bytes(), 0);
            assert_eq!(conversation.under_way(), 0);
        }
    }

    fn rest(&mut self, seconds: u64) {
        let end = self.now + Duration::from_secs(seconds);
        let mut arrived_at = self.now;
        while self.now < end {
            self.exchange();
            if self.server.conversations().under_way() == 0 || !self.are_known() {
                arrived_at = self.now;
            }
            let under_way_for = self.now - arrived_at;
            assert!(
                under_way_for < ARRIVES_WITHIN,
                "an answer that is not waited for"
            );
            self.now += Duration::from_millis(500);
        }
    }

    /// Whether all clients are in the conversations that they have begun with, and at the same addresses. To others
    /// answers are sent until they are given up.
    fn are_known(&self) -> bool {
        let mut clients = self.clients.iter();
        self.plan.moves == 0
            && clients.all(|client| client.conversation().counters().conversations <= 1)
    }

    pub fn count(&self, of: impl Fn(Outcome) -> bool) -> usize {
        let outcomes = self.calls.iter().filter_map(|call| call.outcome);
        outcomes.filter(|outcome| of(*outcome)).count()
    }
}
