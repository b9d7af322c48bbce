/** Ends a switch that has named every case: the compiler refuses a new one that it forgets, and so does the run. */
export function unreachable(value: never): never {
  throw new Error(`not reachable: ${JSON.stringify(value)}`);
}
