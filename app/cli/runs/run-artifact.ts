import { createHash } from 'node:crypto';
import { toFile, toScreen } from '../../analysis/row-writer.ts';
import { CommandError, exitCodes } from '../calling/command-errors.ts';
import type { Session } from '../calling/session.ts';

/**
 * Writes an artifact of a run as it arrives, and checks its hash.
 * @param output a new file; undefined: the standard output
 * @throws CommandError if the service rejects the request, or if the hash differs. No file is left then
 */
export async function saveArtifact(
  session: Session,
  runId: string,
  artifact: string,
  output: string | undefined,
): Promise<void> {
  const { out } = session.environment;
  // Opened before the service is called, so that an existing file is rejected first.
  const writer = output === undefined ? toScreen(out) : await toFile(output);
  try {
    const digest = createHash('sha256');
    for await (const text of session.client.text((api) => api.exports.artifact(runId, artifact))) {
      digest.update(text);
      await writer.write(text);
    }
    if (digest.digest('hex') !== artifact) {
      const message = 'the artifact was damaged in transit: its SHA-256 differs; try again';
      throw new CommandError(exitCodes.failure, message);
    }
    if (output === undefined) await writer.write('\n');
    await writer.finish();
  } catch (error) {
    await writer.abandon();
    throw error;
  }
}
