package harness

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"sync/atomic"
)

// firstPort is below the kernel's range of ephemeral ports.
const firstPort = 10_000

var ports atomic.Int64

// FreeAddress returns an unused address on loopback. Each process has its own IP address, derived from its ID, and each call returns
// another port. On Linux, all of 127.0.0.0/8 is loopback.
func FreeAddress() string {
	return net.JoinHostPort(loopback(), freePort())
}

func freePort() string { return strconv.FormatInt(firstPort+ports.Add(1), 10) }

// loopback returns the IP address of this process. It is outside of 127.0.0.0/10, which contains 127.0.0.1. A process ID has at most 22
// bits.
func loopback() string {
	pid := os.Getpid()
	return fmt.Sprintf("127.%d.%d.%d", 64+pid>>16&63, pid>>8&255, pid&255)
}
