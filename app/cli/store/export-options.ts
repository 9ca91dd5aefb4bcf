import { exportFormats } from '../../../api/exporting/export-formats.ts';
import { runStates, runTriggers } from '../../../domain/vocabulary.ts';
import { choice, dataDir, repeatable, text, withDefault, type OptionValues } from '../options.ts';

/** The options of `svc export`. */
export const exportOptions = {
  format: choice(
    'format',
    'export rows instead of the log; with --url from a service',
    exportFormats,
  ),
  of: withDefault(choice('what', 'the rows to export', ['events', 'runs'] as const), 'events'),
  output: text('file', 'file for the rows (default: standard output)'),
  since: text('instant', 'events that occurred, or runs queued, at or after this'),
  until: text('instant', 'and before this; with --task, a date includes that day'),
  task: text('id', "one task's changes, fires and runs"),
  kind: repeatable('kind', 'events of streams of this kind, such as task or run'),
  type: repeatable('type', 'events of this type, such as RunFailed'),
  state: choice('state', 'runs in this state', runStates),
  trigger: choice('trigger', 'runs with this trigger', runTriggers),
  cursor: text('id', 'continue after this run or log position; with --url'),
  dataDir,
};

export type ExportOptions = OptionValues<typeof exportOptions>;
