"""Calls every operation of hprpc.x by python-vxi11's rpc.py and checks each answer."""

import sys

import hprpc
from hprpc import rpc

CLIENTS = {"tcp": rpc.RawTCPClient, "udp": rpc.RawUDPClient}
# Numbers in a large message: rpc.py reads datagrams of at most 8,192 bytes.
MANY = {"tcp": 262144, "udp": 1900}


class Client:
    """The procedures of hprpc.x over one transport."""

    def __init__(self, transport, host, port):
        self.peer = CLIENTS[transport](host, hprpc.PROGRAM, hprpc.VERSION, port)
        hprpc.add_packers(self.peer)
        self.packer, self.unpacker = self.peer.packer, self.peer.unpacker

    def null(self):
        return self.peer.call_0()

    def say_hello(self, name):
        call = self.peer.make_call
        return call(hprpc.SAY_HELLO, name, self.packer.pack_string, self.unpacker.unpack_string)

    def average(self, numbers):
        call = self.peer.make_call
        return call(hprpc.AVERAGE, numbers, self.packer.pack_numbers, self.unpacker.unpack_double)

    def get_rand_nums(self, count):
        call = self.peer.make_call
        return call(
            hprpc.GET_RAND_NUMS, count, self.packer.pack_uint, self.unpacker.unpack_numbers
        )

    def send_rcv_large_data(self, members):
        pack, unpack = self.packer.pack_large_data, self.unpacker.unpack_large_data
        return self.peer.make_call(hprpc.SEND_RCV_LARGE_DATA, members, pack, unpack)

    def max_result(self):
        return self.peer.make_call(hprpc.MAX_RESULT, None, None, self.unpacker.unpack_packet)

    def unknown_procedure(self):
        return self.peer.make_call(9999, None, None, None)


def expect(actual, expected, what):
    if actual != expected:
        sys.exit(f"{what}: expected {expected!r:.80}, got {actual!r:.80}")


def expect_refusal(call, words):
    try:
        call()
    except rpc.RPCError as refusal:
        expect(words in str(refusal), True, f"{refusal} names {words}")
    else:
        sys.exit(f"expected a refusal: {words}")


def check(client, many):
    members = [i * 16777619 % 2**31 - 2**30 for i in range(hprpc.MEMBERS)]
    expect(client.null(), None, "null")
    expect(client.say_hello(b"World"), b"Hello World", "say_hello")
    expect(client.say_hello(b"\xff"), b"Hello \xff", "say_hello, not UTF-8")
    expect(client.average([]), 0.0, "average of nothing")
    expect(client.average(list(range(1, many + 1))), (many + 1) / 2, "average")
    expect(client.get_rand_nums(0), [], "get_rand_nums of nothing")
    expect(client.get_rand_nums(many), hprpc.rand_nums(many), "get_rand_nums")
    expect(client.send_rcv_large_data(members), members, "send_rcv_large_data")
    expect(client.max_result(), hprpc.max_result(), "max_result")
    expect_refusal(client.unknown_procedure, "PROC_UNAVAIL")
    expect(client.null(), None, "null after a refusal")


def main():
    if len(sys.argv) != 4 or sys.argv[1] not in CLIENTS:
        hprpc.usage("tcp|udp HOST PORT")
    transport, host, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
    check(Client(transport, host, port), MANY[transport])
    print("hprpc: every answer is right")


if __name__ == "__main__":
    main()
