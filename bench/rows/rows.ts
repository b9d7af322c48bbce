import type { Row } from '../row.ts';
import { byteInGib, openCrowd, openFew } from './cold.ts';
import { readdir, renameCrowd, renameSparse, walk } from './directory.ts';
import { event } from './event.ts';
import { existsMiss, mixed, statLower, statMiss, statMixed } from './look.ts';
import { bulkAgain, bulkFirst, promisesInFlight, promisesSerial, readAgain, readFirst, readUpper } from './read.ts';
import { session } from './session.ts';
import { appendLower, appendOne, overwrite, writeNew } from './write.ts';

/** Every row, in the order of the table. */
export const ROWS: readonly Row[] = [
  readFirst, readAgain, readUpper, promisesSerial, promisesInFlight, bulkFirst, bulkAgain,
  existsMiss, statMiss,
  writeNew, overwrite, appendOne, appendLower, byteInGib,
  statLower, statMixed, readdir, walk, renameCrowd, renameSparse, mixed,
  openCrowd, openFew, event, session,
];
