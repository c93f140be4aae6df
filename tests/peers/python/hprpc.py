"""What client and server share: hprpc.x for python-vxi11's rpc.py, an implementation of ONC RPC
that owes nothing to libtirpc."""

import sys
import warnings

# rpc.py stands on xdrlib, which Python 3.13 drops.
warnings.filterwarnings("ignore", category=DeprecationWarning)

from vxi11 import rpc  # noqa: E402

PROGRAM = 0x20004850
VERSION = 1
SAY_HELLO, AVERAGE, GET_RAND_NUMS, SEND_RCV_LARGE_DATA, MAX_RESULT = range(1, 6)
MEMBERS = 128
MAX_RESULT_BYTES = 1440


def rand_nums(count):
    """The sequence that hprpc.x prescribes."""
    numbers, x = [], 1
    for _ in range(count):
        x = (1103515245 * x + 12345) % 2**31
        numbers.append(x)
    return numbers


def max_result():
    """The result of MAX_RESULT."""
    return bytes(i % 256 for i in range(MAX_RESULT_BYTES))


class Packer(rpc.Packer):
    """Encodes the types of hprpc.x."""

    def pack_numbers(self, numbers):
        self.pack_array(numbers, self.pack_int)

    def pack_large_data(self, members):
        self.pack_farray(MEMBERS, members, self.pack_int)

    def pack_packet(self, data):
        self.pack_fopaque(MAX_RESULT_BYTES, data)


class Unpacker(rpc.Unpacker):
    """Decodes the types of hprpc.x."""

    def unpack_numbers(self):
        return self.unpack_array(self.unpack_int)

    def unpack_large_data(self):
        return self.unpack_farray(MEMBERS, self.unpack_int)

    def unpack_packet(self):
        return self.unpack_fopaque(MAX_RESULT_BYTES)


def add_packers(peer):
    """Gives a client or server of rpc.py the types of hprpc.x."""
    peer.packer = Packer()
    peer.unpacker = Unpacker(b"")


def usage(text):
    sys.exit(f"usage: {sys.argv[0]} {text}")
