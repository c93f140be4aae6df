//! Clients, a server and the network between them: what happens to them, and what must hold whatever does.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tenon_proto::exchange::client::{CallId, ClientEngine, ClientEvent, ClientLimits};
use tenon_proto::exchange::server::{CallKey, ServerEngine, ServerEvent, ServerLimits};
use tenon_proto::exchange::{Failure, Reason};
use tenon_proto::lean::client::{NotStarted, ReplyError};
use tenon_proto::lean::server::{Caller, Catalog, Reply};
use tenon_proto::lean::{ByteOrder, Status};
use tenon_wire::Buffer;

use super::Plan;
use crate::common::Random;
use crate::network::{Datagram, Faults, Network};
use crate::support::{
    ORDERS, address, catalog, client_of, known, message, outgoing, server_address, server_of,
};

/// For how long at most an answer is under way over a quiet network: until it is sent again, and asks, which is no later
/// than any timer.
const ARRIVES_WITHIN: Duration = Duration::from_secs(15);

/// What became of a call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fate {
    Answered,
    Refused(Status),
    Failed(Failure),
    Cancelled,
}

pub struct Call {
    client: usize,
    id: Option<CallId>,
    deadline: Instant,
    answer_bytes: usize,
    seed: u64,
    executed: u32,
    pub fate: Option<Fate>,
}

struct Running {
    key: CallKey,
    caller: Caller,
    call: usize,
    until: Instant,
}

pub struct Client {
    pub engine: ClientEngine<usize>,
    order: ByteOrder,
    address: SocketAddr,
}

pub struct World {
    plan: Plan,
    random: Random,
    now: Instant,
    pub network: Network,
    pub clients: Vec<Client>,
    server: ServerEngine<SocketAddr>,
    limits: ServerLimits,
    incarnation: u32,
    catalog: Catalog,
    running: Vec<Running>,
    pub calls: Vec<Call>,
    datagram: Buffer,
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
                engine: client_of(order, ClientLimits::default(), random.next()),
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
            server: server_of(ORDERS[random.below(2)], limits, 1, now),
            limits,
            incarnation: 1,
            catalog: catalog(),
            running: Vec::new(),
            calls: Vec::new(),
            datagram: Buffer::default(),
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
        self.calls.iter().filter(|call| call.fate.is_none()).count()
    }

    /// What owners and fate do between packets.
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
        let busy = self.clients.iter().map(|client| client.engine.in_flight());
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
        let knows_limits = self.clients[which].engine.peer().is_some();
        let (bytes, answer_bytes) = match knows_limits {
            true => (bytes, answer_bytes),
            false => (bytes % 1000, answer_bytes),
        };
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
            version => std::sync::Arc::new(tenon_proto::lean::Interface::unknown(300, version)),
        };
        let service = client.engine.bind(&interface).unwrap();
        let mut message = message(client.order, 7, &arguments);
        let limit = Duration::from_millis(self.random.below(self.plan.deadline_s * 1000) as u64);
        let mut call = outgoing(service, 7, self.now);
        call.deadline = self.now + limit;
        match client.engine.start(self.now, &call, &mut message, number) {
            Ok(id) => self.calls.push(Call {
                client: which,
                id: Some(id),
                deadline: call.deadline,
                answer_bytes,
                seed,
                executed: 0,
                fate: None,
            }),
            Err(NotStarted::TooManyCalls { .. } | NotStarted::AwaitsPreamble { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }

    fn give_up(&mut self) {
        let open: Vec<usize> = (0..self.calls.len())
            .filter(|number| self.calls[*number].fate.is_none())
            .collect();
        if open.is_empty() {
            return;
        }
        let number = open[self.random.below(open.len())];
        let call = &self.calls[number];
        let engine = &mut self.clients[call.client].engine;
        assert_eq!(engine.cancel(call.id.unwrap()), Some(number));
        self.settle(number, Fate::Cancelled);
    }

    fn restart(&mut self) {
        self.incarnation += 1;
        self.running.clear();
        let order = ORDERS[self.random.below(2)];
        self.server = server_of(order, self.limits, self.incarnation, self.now);
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
        let clients = clients.filter_map(|client| client.engine.poll_timeout());
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
                if !client.engine.poll_transmit(self.now, &mut self.datagram) {
                    break;
                }
                let datagram = Datagram {
                    from: client.address,
                    to: server_address(),
                    bytes: self.datagram.as_slice().to_vec(),
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
        let Some(answer) = client.engine.handle_datagram(self.now, &datagram.bytes) else {
            return;
        };
        let number = answer.waiter;
        assert_eq!(self.calls[number].id, Some(answer.id));
        let fate = match answer.outcome {
            Ok(result) => {
                let call = &self.calls[number];
                let expected = content(!call.seed, call.answer_bytes);
                assert!(result == expected, "a wrong result of call {number}");
                Fate::Answered
            }
            Err(ReplyError::Exception(exception)) => Fate::Refused(exception.status),
            Err(ReplyError::Unbound(refusal)) => panic!("{refusal}"),
        };
        self.settle(number, fate);
    }

    fn serve(&mut self, datagram: &Datagram) {
        let request =
            self.server
                .handle_datagram(self.now, datagram.from, &datagram.bytes, &self.catalog);
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
            let reply = Reply::begin(&mut message, caller);
            message.extend(&content(!call.seed, call.answer_bytes));
            reply.seal(&mut message);
            self.server.reply(key, &mut message);
            assert!(message.is_empty());
        }
    }

    fn let_time_pass(&mut self) {
        for index in 0..self.clients.len() {
            let engine = &mut self.clients[index].engine;
            if engine.poll_timeout().is_some_and(|at| at <= self.now) {
                engine.handle_timeout(self.now);
            }
            while let Some(ClientEvent::Failed {
                id,
                waiter,
                failure,
            }) = self.clients[index].engine.poll_event()
            {
                let call = &self.calls[waiter];
                assert_eq!(call.id, Some(id));
                if failure.reason == Reason::Expired {
                    assert!(call.deadline <= self.now);
                }
                self.settle(waiter, Fate::Failed(failure));
            }
        }
        if self.server.poll_timeout().is_some_and(|at| at <= self.now) {
            self.server.handle_timeout(self.now);
        }
        while let Some(ServerEvent::Cancelled(key)) = self.server.poll_event() {
            // Half of the services notice.
            let now = self.now;
            let is_seen = self.random.below(2) == 0;
            let running = self.running.iter_mut();
            for running in running.filter(|running| is_seen && running.key == key) {
                running.until = now;
            }
        }
    }

    fn settle(&mut self, number: usize, fate: Fate) {
        let call = &mut self.calls[number];
        let before = call.fate.replace(fate);
        assert_eq!(before, None, "call {number} ended twice");
    }

    fn check_bounds(&self) {
        let limits = &self.limits;
        // A fragment is let in by its length, and may be given memory that another message left behind: at most
        // twice what its message needs.
        let slack = 2 * self.plan.bytes_max;
        let bytes = self.server.bytes();
        assert!(bytes <= limits.bytes + slack, "{bytes} bytes");
        assert!(self.server.conversations() <= limits.conversations);
        for call in self.calls.iter().filter(|call| call.fate.is_none()) {
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
            match call.fate.expect("every call ends") {
                Fate::Answered => assert_eq!(call.executed, 1),
                Fate::Failed(failure) if !failure.may_have_run => {
                    assert_eq!(call.executed, 0, "{failure}");
                }
                Fate::Refused(status) => assert_eq!(status, Status::TOO_LARGE),
                Fate::Failed(_) | Fate::Cancelled => assert!(call.executed <= 1),
            }
        }
        assert_eq!(self.server.conversations(), 0);
        assert_eq!(self.server.bytes(), 0);
        for client in &self.clients {
            assert_eq!(client.engine.lanes_in_use(), 0);
            assert_eq!(client.engine.in_flight(), 0);
            assert_eq!(client.engine.bytes(), 0);
            assert_eq!(client.engine.under_way(), 0);
        }
    }

    fn rest(&mut self, seconds: u64) {
        let end = self.now + Duration::from_secs(seconds);
        let mut arrived_at = self.now;
        while self.now < end {
            self.exchange();
            if self.server.under_way() == 0 || !self.are_known() {
                arrived_at = self.now;
            }
            let under_way_for = self.now - arrived_at;
            assert!(under_way_for < ARRIVES_WITHIN, "what nobody waits for");
            self.now += Duration::from_millis(500);
        }
    }

    /// Whether all clients are in the conversations that they have begun with, and at the same addresses. Who is not
    /// is sent its answers until they are given up.
    fn are_known(&self) -> bool {
        let mut clients = self.clients.iter();
        self.plan.moves == 0 && clients.all(|client| client.engine.counters().conversations <= 1)
    }

    pub fn count(&self, of: impl Fn(Fate) -> bool) -> usize {
        let fates = self.calls.iter().filter_map(|call| call.fate);
        fates.filter(|fate| of(*fate)).count()
    }
}
