package rpc

import "golang.org/x/sys/unix"

// maxPath is the longest socket path in bytes: sun_path is 104 with its NUL.
const maxPath = 103

// credentials is the user at the other end, as the kernel noted it at connect or bind (LOCAL_PEERCRED).
func credentials(fd int) (uid int, err error) {
	cred, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return -1, err
	}
	return int(cred.Uid), nil
}
