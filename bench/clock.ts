/** Times in µs. */
export interface Elapsed {
  readonly wall: number;
  /** Of all threads of this process, in user code and in the kernel. */
  readonly cpu: number;
}

/** Starts the clocks; the result stops them. */
export function startClock(): () => Elapsed {
  const cpu = process.cpuUsage(), wall = process.hrtime.bigint();
  return () => {
    const elapsed = Number(process.hrtime.bigint() - wall) / 1000;
    const { user, system } = process.cpuUsage(cpu);
    return { wall: elapsed, cpu: user + system };
  };
}
