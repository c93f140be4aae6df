"""The operations of hprpc.x, served by python-vxi11's rpc.py over TCP or UDP.

Prints its address ("tcp 127.0.0.1 PORT") and "ready", and serves until it is killed."""

import sys

import hprpc
from hprpc import rpc


class Operations:
    """A handler per procedure, named as rpc.py wants it."""

    def addpackers(self):
        hprpc.add_packers(self)

    def handle_1(self):
        name = self.unpacker.unpack_string()
        self.turn_around()
        self.packer.pack_string(b"Hello " + name)

    def handle_2(self):
        numbers = self.unpacker.unpack_numbers()
        self.turn_around()
        self.packer.pack_double(sum(numbers) / len(numbers) if numbers else 0.0)

    def handle_3(self):
        count = self.unpacker.unpack_uint()
        self.turn_around()
        self.packer.pack_numbers(hprpc.rand_nums(count))

    def handle_4(self):
        members = self.unpacker.unpack_large_data()
        self.turn_around()
        self.packer.pack_large_data(members)

    def handle_5(self):
        self.turn_around()
        self.packer.pack_packet(hprpc.max_result())


class TcpServer(Operations, rpc.TCPServer):
    pass


class UdpServer(Operations, rpc.UDPServer):
    pass


SERVERS = {"tcp": TcpServer, "udp": UdpServer}


def main():
    if len(sys.argv) != 2 or sys.argv[1] not in SERVERS:
        hprpc.usage("tcp|udp")
    transport = sys.argv[1]
    server = SERVERS[transport]("127.0.0.1", hprpc.PROGRAM, hprpc.VERSION, 0)
    if transport == "tcp":
        server.sock.listen(16)
    print(transport, server.host, server.port)
    print("ready", flush=True)
    server.loop()


if __name__ == "__main__":
    main()
