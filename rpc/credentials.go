package rpc

import (
	"fmt"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// checkPeer refuses a peer of another user. Root is no exception, on either side: a supervisor serves its
// own uid.
func checkPeer(conn net.Conn) (uid int, err error) {
	if uid, err = peerUID(conn); err != nil {
		return -1, fmt.Errorf("look at the peer: %w", err)
	}
	if uid != currentUID() {
		return -1, fmt.Errorf("peer (uid %d): %w", uid, ErrForeign)
	}
	return uid, nil
}

func peerUID(conn net.Conn) (uid int, err error) {
	e := control(conn, func(fd int) { uid, err = credentials(fd) })
	if e != nil {
		return -1, e
	}
	return uid, err
}

// hungUp reports whether the peer has closed its end, without reading what it left.
func hungUp(conn net.Conn) bool {
	gone := false
	err := control(conn, func(fd int) {
		fds := []unix.PollFd{{Fd: int32(fd)}} // POLLHUP comes unasked
		n, err := unix.Poll(fds, 0)
		gone = err == nil && n > 0 && fds[0].Revents&(unix.POLLHUP|unix.POLLERR|unix.POLLNVAL) != 0
	})
	return gone || err != nil
}

func control(conn net.Conn, f func(fd int)) error {
	c, ok := conn.(syscall.Conn)
	if !ok {
		return fmt.Errorf("%T is no socket: %w", conn, ErrForeign)
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	return raw.Control(func(fd uintptr) { f(int(fd)) })
}
