import { anyOf } from '../policy/glob.ts';
import { readEvents } from '../overlay/log-reader.ts';
import { harmlessBlobs } from '../replay/secrets.ts';
import { openDirectoryStore } from '../store/open.ts';
import { packedSession } from '../store/parcel.ts';
import { spokenEach } from './spoken.ts';

/**
 * The session in `directory` as one file, a piece at a time; beside its live writer, too. `redact`: globs over paths whose contents are left out, of which
 * the log keeps the digests: whoever reads them there is told EIO. Throws `SessionError` where no session is there, or where it is a fork, which is not whole
 * without its parent; TypeError for a glob that is none.
 */
export function packSession(directory: string, { redact = [] }: { readonly redact?: readonly string[] } = {}): Generator<Uint8Array> {
  const matches = redact.length === 0 ? undefined : anyOf(redact);
  return spokenEach('export', packedSession(directory, matches && (() => {
    const store = openDirectoryStore({ directory, readOnly: true });
    try {
      return harmlessBlobs(readEvents(store), matches);
    } finally {
      store.close();
    }
  })));
}
