import { runTriggers } from '../../../domain/vocabulary.ts';
import { choice, text, type OptionValues } from '../options.ts';

/** Options that choose runs by their content. */
export const searchOptions = {
  id: text('prefix', 'runs whose id begins like this, with at least 4 characters'),
  error: text('text', 'runs with this text in the error'),
  errorGroup: text('id', 'runs that failed with this error; `svc runs errors` lists the ids'),
  input: text('text', 'runs with this text in their params or event, as JSON'),
  event: text('id', 'runs that this event triggered'),
};

/** The parameters of the service for {@link searchOptions}. */
export const searchOf = ({
  id,
  error,
  errorGroup: error_group,
  input,
  event: event_id,
}: OptionValues<typeof searchOptions>) => ({ id, error, error_group, input, event_id });

/** Options that choose the runs of a command for many runs. */
export const selectionOptions = {
  task: text('id', 'runs of this task'),
  createdBy: text('agent', "runs of this agent's tasks"),
  trigger: choice('trigger', 'runs with this trigger', runTriggers),
  since: text('instant', 'started after this'),
  until: text('instant', 'started before this; with --task, a date includes that day'),
  ...searchOptions,
};

/** The fields of a request for {@link selectionOptions}. */
export const selectionOf = ({
  task: task_id,
  createdBy: created_by,
  trigger,
  since: start_time,
  until: end_time,
  ...search
}: OptionValues<typeof selectionOptions>) => ({
  task_id,
  created_by,
  trigger,
  start_time,
  end_time,
  ...searchOf(search),
});
