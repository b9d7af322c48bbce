import { encodeState } from '../core/checkpoint.ts';
import { Descriptors } from '../overlay/descriptor.ts';
import { Gate } from '../overlay/gate.ts';
import { OpenInodes } from '../overlay/inode.ts';
import { Recorder } from '../overlay/recorder.ts';
import { Session } from '../overlay/session.ts';
import { Walker } from '../overlay/walker.ts';
import { Watchers } from '../overlay/watchers.ts';
import { World } from '../overlay/world.ts';
import { PrefixStore } from '../store/prefix.ts';
import { seqOf, type Moments } from '../replay/moments.ts';

/**
 * A world as it was at a moment, over the lower as it is now; nothing is recorded in it and nothing can be changed. It shares with `world` all
 * but its state, and is over when that is closed. The rules are those that hold in `world`.
 */
export function momentOf(world: World, moments: Moments, moment: number | string): World {
  const { session: { store, clock }, lower, contents, versions, credentials, attributes, outside, walker: { mounts } } = world;
  world.session.publish();
  const seq = seqOf(moment, world.state, (store.header.parent?.seq ?? 0) + 1), state = moments.after(seq);
  const session = new Session({
    state, store: new PrefixStore(store, seq), clock, durability: 'memory', settle: contents.settle, checkpoint: encodeState, readOnly: true,
  });
  const recorder = new Recorder(session), gate = world.gate && new Gate({ rules: world.gate.rules, lower, recorder });
  return new World({
    session, lower, contents, attributes, versions, credentials, recorder, gate, outside,
    walker: new Walker({ state, lower, credentials, mounts, gate }),
    inodes: new OpenInodes(), descriptors: new Descriptors(), watchers: new Watchers({ state, lower, gate }),
  });
}
