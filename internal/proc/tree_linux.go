package proc

import (
	"os"
	"strconv"
	"strings"
)

// Tree returns the live processes below root, and the zombies there. One that spare accepts is left out with all
// below it. A tree that forks meanwhile may have more: what dies during a look leaves its children to root, after
// those of root were listed, perhaps. It leaves a zombie as well; so a look proves that nothing lives if it finds
// none, root being the only one that reaps them.
func Tree(root int, spare func(Stat, []string) bool) (living []Identity, zombies []int, err error) {
	boot, err := BootID()
	if err != nil {
		return nil, nil, err
	}
	children, err := childrenBelow(root)
	if err != nil {
		return nil, nil, err
	}
	walk(root, children, func(st Stat) bool {
		switch {
		case spare != nil && spare(st, argsOrNone(st.PID)):
			return false
		case st.dead():
			zombies = append(zombies, st.PID)
		default:
			living = append(living, Identity{PID: st.PID, StartTicks: st.StartTicks, BootID: boot})
		}
		return true
	})
	return living, zombies, nil
}

// walk visits what is below root, each pid once: a table that was read while processes moved can list one
// twice, and even in a circle. Below what visit refuses it does not go.
func walk(root int, children func(int) []Stat, visit func(Stat) bool) {
	seen := map[int]bool{root: true}
	for queue := children(root); len(queue) > 0; queue = queue[1:] {
		st := queue[0]
		if seen[st.PID] {
			continue
		}
		seen[st.PID] = true
		if visit(st) {
			queue = append(queue, children(st.PID)...)
		}
	}
}

func argsOrNone(pid int) []string {
	args, _ := Args(pid)
	return args
}

// childrenBelow returns how to look up children: from the kernel's own lists, which exist where it was
// built with them (CONFIG_PROC_CHILDREN), else from one look at all processes.
func childrenBelow(root int) (func(int) []Stat, error) {
	pid := strconv.Itoa(root)
	if _, err := os.Stat("/proc/" + pid + "/task/" + pid + "/children"); err != nil {
		return scannedChildren()
	}
	return func(pid int) []Stat { return listedChildren(root, pid) }, nil
}

// scannedChildren takes pid, parent and start of each process from the same read, so that a pid that is
// reused during the scan cannot be taken for a child.
func scannedChildren() (func(int) []Stat, error) {
	all, err := pids()
	if err != nil {
		return nil, err
	}
	below := map[int][]Stat{}
	for _, pid := range all {
		if st, err := Read(pid); err == nil {
			below[st.PPID] = append(below[st.PPID], st)
		}
	}
	return func(pid int) []Stat { return below[pid] }, nil
}

// listedChildren reads the kernel's lists of pid's children. Between the list and the read, the child's
// pid may have been given to a process that is none of ours; so its parent must be pid still, or root, the
// subreaper to which orphans fall.
func listedChildren(root, pid int) (children []Stat) {
	for _, child := range childPIDs(pid) {
		if st, err := Read(child); err == nil && (st.PPID == pid || st.PPID == root) {
			children = append(children, st)
		}
	}
	return children
}

func childPIDs(pid int) (children []int) {
	base := "/proc/" + strconv.Itoa(pid) + "/task"
	tasks, _ := os.ReadDir(base) // children belong to the thread that forked them
	for _, task := range tasks {
		b, _ := os.ReadFile(base + "/" + task.Name() + "/children")
		for _, field := range strings.Fields(string(b)) {
			if child, err := strconv.Atoi(field); err == nil {
				children = append(children, child)
			}
		}
	}
	return children
}

// Zombies returns the children of this process that have exited and were not reaped.
func Zombies() (zombies []int) {
	self := os.Getpid()
	children, err := childrenBelow(self)
	if err != nil {
		return nil
	}
	for _, st := range children(self) {
		if st.dead() {
			zombies = append(zombies, st.PID)
		}
	}
	return zombies
}
