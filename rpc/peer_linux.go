package rpc

import (
	"net"

	"golang.org/x/sys/unix"
)

// peerUID is the user who connected, as the kernel noted it then (SO_PEERCRED, unix(7)).
func peerUID(conn net.Conn) (uid int, err error) {
	u, ok := conn.(*net.UnixConn)
	if !ok {
		return -1, errForeign
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return -1, err
	}
	var cred *unix.Ucred
	if e := raw.Control(func(fd uintptr) {
		cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); e != nil {
		return -1, e
	}
	if err != nil {
		return -1, err
	}
	return int(cred.Uid), nil
}
