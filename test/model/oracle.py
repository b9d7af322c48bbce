"""Plays system calls on a real directory: reads {root, since, umask, user?, steps} as JSON, prints what each step gave and what the tree is then.

The calls are those that node has no names for; what they give is what the overlay has to give (test/model/kernel.test.ts).
"""
import base64, ctypes, errno, json, os, stat, sys, zlib

libc = ctypes.CDLL(None, use_errno=True)
AT_FDCWD, OMIT, NOW = -100, (1 << 30) - 2, (1 << 30) - 1
TYPES = {'file': stat.S_IFREG, 'fifo': stat.S_IFIFO, 'socket': stat.S_IFSOCK, 'character': stat.S_IFCHR, 'block': stat.S_IFBLK}


class Timespec(ctypes.Structure):
    _fields_ = [('sec', ctypes.c_long), ('nsec', ctypes.c_long)]


def checked(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), 'refused')
    return result


def spec(time):
    if time == 'now':
        return Timespec(0, NOW)
    if time == 'omit':
        return Timespec(0, OMIT)
    return Timespec(int(time) // 10**9, int(time) % 10**9)


class World:
    def __init__(self, root):
        self.root = root
        self.slots = {}

    def at(self, path):
        return self.root + '/' + path if path else self.root

    def slot(self, step, key='slot'):
        if step[key] not in self.slots:
            raise OSError(errno.EBADF, 'empty slot')
        return self.slots[step[key]]

    def close(self, slot):
        fd = self.slots.pop(slot, None)
        if fd is not None:
            os.close(fd)

    def demand_openable(self, path):
        # A FIFO would wait for its other end, and the overlay in process opens none of these.
        try:
            kind = stat.S_IFMT(os.stat(path).st_mode)
        except OSError:
            return
        if kind not in (stat.S_IFREG, stat.S_IFDIR):
            raise OSError(errno.ENXIO, 'not to be opened')

    def play(self, step):
        op, path = step['op'], self.at(step.get('path', ''))
        if op in ('open', 'tmpfile'):
            self.close(step['slot'])
            if op == 'open' and not step['flags'] & os.O_EXCL:
                self.demand_openable(path)
            flags = step['flags'] | (os.O_TMPFILE if op == 'tmpfile' else 0)
            self.slots[step['slot']] = os.open(path, flags, step['mode'])
        elif op == 'close':
            self.close(step['slot'])
        elif op == 'linkOpen':
            source = b'/proc/self/fd/%d' % self.slot(step)
            checked(libc.linkat(AT_FDCWD, source, AT_FDCWD, path.encode(), 0x400))
        elif op == 'write':
            return os.pwrite(self.slot(step), (step['text'] * step['times']).encode(), step['at'])
        elif op == 'read':
            return digest(os.pread(self.slot(step), step['length'], step['at']))
        elif op == 'ftruncate':
            os.ftruncate(self.slot(step), step['size'])
        elif op == 'fallocate':
            fd, call = self.slot(step), libc.fallocate
            checked(call(fd, step['mode'], ctypes.c_long(step['offset']), ctypes.c_long(step['length'])))
        elif op == 'seek':
            look = os.fstat(self.slot(step))
            if stat.S_ISDIR(look.st_mode) or step['offset'] < look.st_size:
                return 'somewhere'
            os.lseek(self.slot(step), step['offset'], os.SEEK_DATA if step['wanted'] == 'data' else os.SEEK_HOLE)
        elif op == 'copyRange':
            done = 0
            while done < step['length']:
                count = os.copy_file_range(self.slot(step, 'from'), self.slot(step, 'to'), step['length'] - done,
                                           step['fromAt'] + done, step['toAt'] + done)
                if count == 0:
                    break
                done += count
            return done
        elif op == 'fsetxattr':
            os.setxattr(self.slot(step), step['name'], step['value'].encode())
        elif op == 'fchmod':
            os.fchmod(self.slot(step), step['mode'])
        elif op == 'rename':
            flags = (1 if step['noReplace'] else 0) | (2 if step['exchange'] else 0)
            checked(libc.renameat2(AT_FDCWD, path.encode(), AT_FDCWD, self.at(step['to']).encode(), flags))
        elif op == 'link':
            os.link(path, self.at(step['to']), follow_symlinks=False)
        elif op == 'unlink':
            os.unlink(path)
        elif op == 'mkdir':
            os.mkdir(path, step['mode'])
        elif op == 'rmdir':
            os.rmdir(path)
        elif op == 'mknod':
            os.mknod(path, TYPES[step['type']] | step['mode'], step['rdev'])
        elif op == 'symlink':
            os.symlink(step['target'], path)
        elif op == 'chmod':
            os.chmod(path, step['mode'])
        elif op == 'chown':
            os.chown(path, step['uid'], step['gid'], follow_symlinks=False)
        elif op == 'utimes':
            times = (Timespec * 2)(spec(step['atime']), spec(step['mtime']))
            checked(libc.utimensat(AT_FDCWD, path.encode(), times, 0x100))
        elif op == 'setxattr':
            flags = {'create': os.XATTR_CREATE, 'replace': os.XATTR_REPLACE}.get(step.get('only'), 0)
            os.setxattr(path, step['name'], step['value'].encode(), flags, follow_symlinks=False)
        elif op == 'removexattr':
            os.removexattr(path, step['name'], follow_symlinks=False)
        elif op == 'reopen':
            for slot in list(self.slots):
                self.close(slot)
        return 'done'


def digest(data):
    return '%d bytes, sum %d' % (len(data), zlib.crc32(data))


def entry(path, since, numbers, name):
    look = os.lstat(path)
    told = {'mode': oct(look.st_mode)[2:], 'nlink': look.st_nlink, 'uid': look.st_uid, 'gid': look.st_gid, 'rdev': look.st_rdev,
            'mtime': 'now' if look.st_mtime_ns >= since else str(look.st_mtime_ns)}
    kind = stat.S_IFMT(look.st_mode)
    if kind != stat.S_IFDIR:
        told['size'] = look.st_size
        told['first'] = numbers.setdefault((look.st_dev, look.st_ino), name)
    if kind == stat.S_IFREG:
        with open(path, 'rb') as file:
            told['content'] = digest(file.read())
    if kind == stat.S_IFLNK:
        told['target'] = os.readlink(path)
    names = sorted(each for each in os.listxattr(path, follow_symlinks=False) if each.startswith('user.'))
    told['xattrs'] = [[each, base64.b64encode(os.getxattr(path, each, follow_symlinks=False)).decode()] for each in names]
    return told


def census(root, since):
    lines, numbers = [], {}

    def visit(name):
        path = root + '/' + name if name else root
        try:
            lines.append([name, entry(path, since, numbers, name)])
            if stat.S_ISDIR(os.lstat(path).st_mode):
                for child in sorted(os.listdir(path)):
                    visit(name + '/' + child if name else child)
        except PermissionError:
            lines.append([name, 'EACCES'])

    visit('')
    return lines


def main():
    given = json.load(sys.stdin)
    world, outcomes = World(given['root']), []
    os.umask(given['umask'])
    if 'user' in given:
        os.setgroups([given['user']])
        os.setresgid(*[given['user']] * 3)
        os.setresuid(*[given['user']] * 3)
    for step in given['steps']:
        try:
            outcomes.append(world.play(step))
        except OSError as error:
            outcomes.append('ENOTSUP' if error.errno == errno.EOPNOTSUPP else errno.errorcode[error.errno])
    json.dump({'outcomes': outcomes, 'census': census(given['root'], int(given['since']))}, sys.stdout)


main()
