import { join } from 'node:path';
import { ArtifactError } from '../../domain/artifacts/artifact-store.ts';
import { silent } from '../../observability/telemetry.ts';
import { ARTIFACTS_FOLDER } from '../../stores/artifacts/file-artifacts.ts';
import { openArtifacts } from '../artifacts.ts';
import { bytes } from '../cli/terminal/units.ts';
import type { Configuration } from '../configuration/configuration.ts';
import type { StoreSettings } from '../stores.ts';
import { fault, ok, type Finding } from './finding.ts';

/** Checks that the store of artifacts can be used. */
export async function checkArtifacts(
  { dataDirectory }: Pick<StoreSettings, 'dataDirectory'>,
  { artifacts }: Pick<Configuration, 'artifacts'>,
): Promise<Finding> {
  const check = 'artifacts';
  const { s3, maxBytes } = artifacts;
  const { store } = await openArtifacts({ artifacts, dataDirectory }, silent);
  try {
    await store.check();
    const place = s3 === undefined ? join(dataDirectory, ARTIFACTS_FOLDER) : `bucket ${s3.bucket}`;
    const most = maxBytes === 0 ? 'large results are cut' : `results up to ${bytes(maxBytes)}`;
    return ok(check, `${place}; ${most}`);
  } catch (error) {
    if (!(error instanceof ArtifactError)) throw error;
    return fault(check, error.problem, error.remedy);
  } finally {
    await store.close();
  }
}
