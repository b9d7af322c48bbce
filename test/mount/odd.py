"""What programs do with files at their oddest: `odd.py DIRECTORY` does it there and prints what each call gave.

Above all with what has no name: unlinked and still open, a removed working directory, a file linked by its descriptor.
"""
import ctypes, errno, fcntl, mmap, os, socket, stat, sys

HERE = sys.argv[1]
libc = ctypes.CDLL(None, use_errno=True)
AT_FDCWD, AT_SYMLINK_FOLLOW, EXCHANGE = -100, 0x400, 2


def told(name, act):
    try:
        result = act()
    except OSError as error:
        result = errno.errorcode[error.errno]
    print(name, '=>', result)


def write(path, data=b'x'):
    with open(path, 'wb') as file:
        file.write(data)


def read(path):
    with open(path, 'rb') as file:
        return file.read()


def via_proc(fd):
    return '/proc/self/fd/%d' % fd


def called(result):
    return 'done' if result >= 0 else errno.errorcode[ctypes.get_errno()]


def link_open(fd, to):
    return called(libc.linkat(AT_FDCWD, via_proc(fd).encode(), AT_FDCWD, to.encode(), AT_SYMLINK_FOLLOW))


def exchange(a, b):
    return called(libc.renameat2(AT_FDCWD, a.encode(), AT_FDCWD, b.encode(), EXCHANGE))


def unlinked_file():
    write('f', b'hello')
    fd = os.open('f', os.O_RDWR)
    os.unlink('f')
    told('links', lambda: os.fstat(fd).st_nlink)
    told('reopen', lambda: os.read(os.open(via_proc(fd), os.O_RDONLY), 10))
    told('reopen to truncate', lambda: (os.close(os.open(via_proc(fd), os.O_RDWR | os.O_TRUNC)), os.fstat(fd).st_size))
    os.pwrite(fd, b'abc', 0)
    told('stat by way of proc', lambda: os.stat(via_proc(fd)).st_size)
    told('truncate by way of proc', lambda: (os.truncate(via_proc(fd), 10), os.fstat(fd).st_size))
    told('chmod by way of proc', lambda: (os.chmod(via_proc(fd), 0o600), oct(os.fstat(fd).st_mode)))
    told('link', lambda: link_open(fd, 'again'))
    told('xattr', lambda: (os.setxattr(fd, 'user.q', b'1'), os.getxattr(fd, 'user.q'), os.listxattr(fd)))
    shared = mmap.mmap(fd, 10)
    shared[0:2] = b'ZZ'
    shared.flush()
    told('mapped', lambda: os.pread(fd, 4, 0))


def removed_directory():
    os.mkdir('d')
    os.chdir('d')
    os.rmdir('../d')
    told('removed directory', lambda: os.stat('.').st_nlink)
    told('its names', lambda: os.listdir('.'))
    told('a file in it', lambda: write('x'))
    told('a directory in it', lambda: os.mkdir('x'))
    told('a look in it', lambda: os.stat('x'))
    told('above it', lambda: os.path.exists('../'))
    os.chdir(HERE)
    os.mkdir('d')
    fd = os.open('d', os.O_RDONLY)
    os.rmdir('d')
    told('removed open directory', lambda: os.fstat(fd).st_nlink)
    told('names by descriptor', lambda: os.listdir(fd))
    told('mode by descriptor', lambda: (os.fchmod(fd, 0o700), oct(os.fstat(fd).st_mode)))


def unlinked_others():
    write('g')
    path = os.open('g', os.O_PATH)
    os.unlink('g')
    told('held by path only', lambda: os.fstat(path).st_nlink)
    os.mkfifo('p')
    fifo = os.open('p', os.O_RDWR)
    os.unlink('p')
    told('fifo', lambda: (stat.S_ISFIFO(os.fstat(fifo).st_mode), os.fstat(fifo).st_nlink))
    told('through the fifo', lambda: (os.write(fifo, b'q'), os.read(fifo, 1)))
    told('mode of the fifo', lambda: (os.fchmod(fifo, 0o600), oct(os.fstat(fifo).st_mode)))
    server, client = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
    server.bind('sock')
    server.listen(1)
    told('socket', lambda: stat.S_ISSOCK(os.stat('sock').st_mode))
    told('connect', lambda: client.connect('sock'))
    os.unlink('sock')


def names_that_change():
    write('h', b'1' * 10)
    held = os.open('h', os.O_RDWR)
    write('i', b'2' * 5)
    os.rename('i', 'h')
    told('replaced', lambda: (os.pread(held, 3, 0), os.fstat(held).st_nlink, os.fstat(held).st_size))
    os.pwrite(held, b'333', 0)
    told('its successor', lambda: read('h'))
    write('l1', b'x')
    os.link('l1', 'l2')
    linked = os.open('l1', os.O_RDWR)
    os.unlink('l1')
    os.pwrite(linked, b'yy', 0)
    told('by the other name', lambda: (read('l2'), os.fstat(linked).st_nlink))
    told('a third name', lambda: (link_open(linked, 'l3'), os.stat('l3').st_nlink))
    os.unlink('l2')
    os.unlink('l3')
    told('no name', lambda: os.fstat(linked).st_nlink)
    os.makedirs('x/y')
    write('x/y/z', b'zz')
    deep = os.open('x/y/z', os.O_RDWR)
    os.rename('x', 'xx')
    os.pwrite(deep, b'ZZ', 0)
    told('below a renamed directory', lambda: read('xx/y/z'))
    for name in ['a', 'b']:
        os.mkdir(name)
        write(name + '/f', name.encode())
    told('exchange', lambda: (exchange('a', 'b'), read('a/f'), read('b/f')))
    told('file and directory', lambda: (exchange('a/f', 'b'), os.path.isdir('a/f'), read('b'), os.stat('a').st_nlink))
    told('into itself', lambda: exchange('a', 'a/f'))
    told('rename into itself', lambda: os.rename('xx', 'xx/y/w'))
    told('rename to itself', lambda: os.rename('h', 'h'))


def nameless_file():
    fd = os.open('.', os.O_TMPFILE | os.O_RDWR, 0o640)
    os.write(fd, b'nameless')
    told('nameless', lambda: (os.fstat(fd).st_nlink, oct(os.fstat(fd).st_mode)))
    told('named', lambda: (link_open(fd, 'named'), os.fstat(fd).st_nlink, os.fstat(fd).st_ino == os.stat('named').st_ino, read('named')))
    os.pwrite(fd, b'N', 0)
    told('one file', lambda: read('named'))
    told('once more', lambda: (link_open(fd, 'named too'), os.stat('named').st_nlink))
    never = os.open('.', os.O_TMPFILE | os.O_EXCL | os.O_RDWR, 0o600)
    told('never', lambda: link_open(never, 'never'))


def limits_and_kinds():
    told('a device 0:0', lambda: (os.mknod('wh', stat.S_IFCHR | 0o600, 0), os.stat('wh').st_rdev, sorted(os.listdir('.'))))
    told('a long name', lambda: (write('n' * 255), os.stat('n' * 255).st_size))
    told('too long a name', lambda: write('n' * 256))
    told('a long target', lambda: (os.symlink('t' * 4095, 'sl'), len(os.readlink('sl'))))
    told('statvfs', lambda: os.statvfs('.').f_namemax)
    told('directory to write', lambda: os.open('a', os.O_RDWR))
    told('directory to create', lambda: os.open('a', os.O_CREAT | os.O_RDONLY))
    told('link not followed', lambda: os.open('sl', os.O_NOFOLLOW))
    told('no link', lambda: os.readlink('h'))
    lock = os.open('h', os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)
    told('locked', lambda: fcntl.flock(os.open('h', os.O_RDWR), fcntl.LOCK_EX | fcntl.LOCK_NB))
    append = os.open('h', os.O_RDWR | os.O_APPEND)
    told('append', lambda: (os.write(append, b'Q'), os.lseek(append, 0, 0), os.write(append, b'R'), read('h')))
    sparse = os.open('sp', os.O_CREAT | os.O_RDWR)
    told('sparse', lambda: (os.ftruncate(sparse, 1 << 30), os.pwrite(sparse, b'x', 1 << 29), os.lseek(sparse, 0, os.SEEK_DATA),
                            os.lseek(sparse, 0, os.SEEK_HOLE), os.stat('sp').st_blocks < 10000))
    told('grown', lambda: (os.posix_fallocate(os.open('pf', os.O_CREAT | os.O_RDWR), 0, 1 << 20), os.stat('pf').st_size))
    told('far out', lambda: (os.pwrite(os.open('bo', os.O_CREAT | os.O_RDWR), b'x', 1 << 40), os.stat('bo').st_size))


def attributes():
    told('user on a symlink', lambda: os.setxattr('sl', 'user.a', b'', follow_symlinks=False))
    told('trusted', lambda: (os.setxattr('h', 'trusted.a', b'v'), os.getxattr('h', 'trusted.a')))
    told('security', lambda: (os.setxattr('h', 'security.x', b'v'), os.getxattr('h', 'security.x')))
    told('capability', lambda: os.setxattr('h', 'security.capability', b'\1\0\0\2\0\4\0\0' + b'\0' * 12))
    told('how long', lambda: len(os.getxattr('h', 'security.capability')))
    os.pwrite(os.open('h', os.O_RDWR), b'w', 0)
    told('after a write', lambda: len(os.getxattr('h', 'security.capability')))
    told('large', lambda: (os.setxattr('h', 'user.big', b'v' * 3000), len(os.getxattr('h', 'user.big'))))
    told('only to create', lambda: os.setxattr('h', 'user.big', b'v', os.XATTR_CREATE))
    told('only to replace', lambda: os.setxattr('h', 'user.none', b'v', os.XATTR_REPLACE))


os.umask(0o022)
os.chdir(HERE)
for part in [unlinked_file, removed_directory, unlinked_others, names_that_change, nameless_file, limits_and_kinds, attributes]:
    part()
