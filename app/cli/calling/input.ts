import { addAbortSignal, type Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { BrokenOff } from './faults.ts';

/**
 * The whole of a stream, as text. At a terminal nothing may ever come: Ctrl-C ends the waiting for it.
 * @throws BrokenOff when the signal is aborted; the stream's error
 */
export async function readInput(stream: Readable, signal: AbortSignal): Promise<string> {
  try {
    return await text(addAbortSignal(signal, stream));
  } catch (error) {
    throw signal.aborted ? new BrokenOff(error, 'it was broken off; nothing was done') : error;
  }
}
