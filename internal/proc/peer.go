package proc

import (
	"fmt"
	"net"
	"syscall"
)

// PeerUID is the user at the other end of a Unix socket, as the kernel noted it when the connection was made.
func PeerUID(conn net.Conn) (uid int, err error) {
	c, ok := conn.(syscall.Conn)
	if !ok {
		return -1, fmt.Errorf("%T is no socket", conn)
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return -1, fmt.Errorf("look at the peer: %w", err)
	}
	if e := raw.Control(func(fd uintptr) { uid, err = peerUID(int(fd)) }); e != nil {
		err = e
	}
	if err != nil {
		return -1, fmt.Errorf("look at the peer: %w", err)
	}
	return uid, nil
}
