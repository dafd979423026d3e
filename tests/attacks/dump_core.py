# class: kernel
# tries: a core dump: the kernel may hand it to a program of the host
# network: any
import os
import resource
import signal

soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
child = os.fork()
if child == 0:
    signal.signal(signal.SIGSEGV, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGSEGV)
dumped = os.WCOREDUMP(os.waitpid(child, 0)[1])
print("ESCAPED: it dumped core" if dumped or hard else "HELD: no core, and no limit to raise")
