import { ApiKeyUses } from './api-key-uses.ts';
import type { RecordParts } from './capped-record.ts';
import { Refusals } from './refusals.ts';

/** The records of the interface about access, in addition to commands. No request waits for these records. */
export class AccessRecords {
  readonly refusals: Refusals;
  readonly apiKeyUses: ApiKeyUses;

  constructor(parts: RecordParts) {
    this.refusals = new Refusals(parts);
    this.apiKeyUses = new ApiKeyUses(parts);
  }

  /** Appends all pending records. Called after the last request. */
  async close(): Promise<void> {
    await Promise.all([this.refusals.close(), this.apiKeyUses.close()]);
  }
}
