// The large results of a run. The run itself holds references to them.

import { html } from '../../preact.js';
import { open, RefusalError } from '../../client.js';
import { Button, Table } from '../../ui/elements.js';
import { Section } from '../../ui/layout.js';
import { saveBlob } from './files-and-clipboard.js';

const NAME = /^[0-9a-f]{64}$/;
const UNITS = ['bytes', 'KiB', 'MiB', 'GiB'];

/** The steps whose result is a reference to an artifact. A tool may return an `artifact` of its own. */
const stepsWithArtifacts = ({ steps }) =>
  steps.filter(({ result }) => NAME.test(result?.artifact) && result.sha256 === result.artifact);

export function RunArtifacts({ run }) {
  const steps = stepsWithArtifacts(run);
  if (steps.length === 0) return null;
  const columns = [
    ['Step', ({ step }) => html`<code>${step}</code>`],
    ['Size', ({ result }) => sizeText(result.size_bytes)],
    [
      'Actions',
      ({ step, result }) =>
        html`<${Button} label="Download the result of ${step}"
          onClick=${() => download(run.id, step, result.artifact)}>Download<//>`,
    ],
  ];
  return html`<${Section} title="Large results">
    <${Table} caption="Large results" rowKey="step" columns=${columns} items=${steps} />
  <//>`;
}

function sizeText(bytes) {
  const unit = Math.min(UNITS.length - 1, Math.floor(Math.log2(Math.max(1, bytes)) / 10));
  const size = bytes / 1024 ** unit;
  return `${unit === 0 || size >= 10 ? Math.round(size) : size.toFixed(1)} ${UNITS[unit]}`;
}

async function download(runId, step, artifact) {
  const response = await open('GET', `runs/${runId}/artifacts/${artifact}`);
  if (!response.ok)
    throw new RefusalError(response.status, await response.json().catch(() => ({})));
  saveBlob(`${runId}-${step}.json`, await response.blob());
}
