import type * as Statistics from '../schemas/statistics-schemas.ts';
import type { Api } from './client.ts';

/** Runs over time, by task and by error. */
export const statistics = ({ read, readOne }: Api) => ({
  ofTask: readOne<Statistics.TaskStatistics, Statistics.DaysQuery>('/task/:id/stats'),
  summary: read<Statistics.StatisticsSummary, Statistics.DaysQuery>('/stats/summary'),
  errors: read<Statistics.ErrorStatistics, Statistics.ErrorsQuery>('/stats/errors'),
  tasks: read<Statistics.TaskRanking, Statistics.RankingQuery>('/stats/tasks'),
});
