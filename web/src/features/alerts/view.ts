import type { Search } from '@/lib/search-params'

/** What the address holds: `?project=hearts`. */
export interface View {
  project?: string | undefined
}

export function parseView(search: Search): View {
  return { project: typeof search.project === 'string' && search.project !== '' ? search.project : undefined }
}

/** Whose alerts are shown: of the project of the address, or the first that the user sees. */
export function projectOf({ project }: View, seen: readonly string[]): string | undefined {
  return project ?? seen[0]
}
