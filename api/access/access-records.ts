import { ApiKeyUses } from './api-key-uses.ts';
import type { RecordParts } from './capped-record.ts';
import { Refusals } from './refusals.ts';

/** What the interface records about access, besides commands. No request waits for it. */
export class AccessRecords {
  readonly refusals: Refusals;
  readonly apiKeyUses: ApiKeyUses;

  constructor(parts: RecordParts) {
    this.refusals = new Refusals(parts);
    this.apiKeyUses = new ApiKeyUses(parts);
  }

  /** Appends everything; called after the last request. */
  async close(): Promise<void> {
    await Promise.all([this.refusals.close(), this.apiKeyUses.close()]);
  }
}
