import { type Search, word } from '@/lib/search-params'

/** The state in the address: `?project=hearts&experiment=exp_…`. */
export interface AlertsUrlState {
  project?: string | undefined
  /** The suggested experiment of a new alert. */
  experiment?: string | undefined
}

export function parseAlertsUrl(search: Search): AlertsUrlState {
  return { project: word(search.project), experiment: word(search.experiment) }
}

/** The project of the shown alerts: the URL's, or the first that the user sees. */
export function projectOf({ project }: AlertsUrlState, seen: readonly string[]): string | undefined {
  return project ?? seen[0]
}
