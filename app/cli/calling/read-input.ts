import { addAbortSignal, type Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { InterruptedError } from './command-errors.ts';

/**
 * Reads a whole stream as a string. Ctrl-C ends the wait for a terminal where nothing is typed.
 * @throws InterruptedError when the signal aborts; the stream's error
 */
export async function readInput(stream: Readable, signal: AbortSignal): Promise<string> {
  try {
    return await text(addAbortSignal(signal, stream));
  } catch (error) {
    throw signal.aborted ? new InterruptedError(error, 'interrupted; nothing was done') : error;
  }
}
