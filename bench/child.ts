import { ROWS } from './rows/rows.ts';
import type { SubjectName } from './subject.ts';

/** `child ROW SUBJECT ARGUMENT`: one cold act; prints its sample as JSON. */
const [name, subject, argument] = process.argv.slice(2);
const row = ROWS.find((row) => row.name === name);
if (row?.kind !== 'cold' || subject === undefined || argument === undefined) throw new Error(`no cold row ${name}`);
const sample = await row.act(subject as SubjectName, argument);
process.stdout.write(JSON.stringify(sample), () => {
  // Peers leave handles open that would keep the process.
  process.exit(0);
});
