import { isatty } from 'node:tty';
import picocolors from 'picocolors';

/** Whether standard output is a terminal. */
export const isTerminal = isatty(1);

/** Colours, on a terminal that can show them and unless NO_COLOR is set to anything but nothing (no-color.org). */
export const paint = picocolors.createColors(isTerminal && !process.env['NO_COLOR'] && process.env['TERM'] !== 'dumb');
