package harness

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"sync/atomic"
)

// firstPort is below the ports that the kernel gives to connections.
const firstPort = 10_000

var ports atomic.Int64

// FreeAddress returns an address on loopback that nobody listens on: each process has an
// IP address of its own, by its ID, and each call a port of its own. All of 127.0.0.0/8 is
// loopback on Linux.
func FreeAddress() string {
	return net.JoinHostPort(loopback(), freePort())
}

func freePort() string { return strconv.FormatInt(firstPort+ports.Add(1), 10) }

// loopback is outside of 127.0.0.0/10, where 127.0.0.1 is. An ID has at most 22 bits.
func loopback() string {
	pid := os.Getpid()
	return fmt.Sprintf("127.%d.%d.%d", 64+pid>>16&63, pid>>8&255, pid&255)
}
