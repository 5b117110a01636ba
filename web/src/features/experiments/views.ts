export interface SavedView {
  name: string
  /** The part of the address after the path: "?state=running". */
  address: string
}

const key = (person: string) => `ferret.views.${person}`

/** The person's views in this browser; none if it keeps nothing for this site, or something else. */
export function readViews(person: string, storage: Storage): SavedView[] {
  try {
    const kept: unknown = JSON.parse(storage.getItem(key(person)) ?? '[]')
    return Array.isArray(kept) ? kept.filter(isView) : []
  } catch {
    return []
  }
}

function isView(value: unknown): value is SavedView {
  const { name, address } = (value ?? {}) as Partial<Record<keyof SavedView, unknown>>
  return typeof name === 'string' && typeof address === 'string'
}

export function writeViews(person: string, views: readonly SavedView[], storage: Storage): void {
  try {
    storage.setItem(key(person), JSON.stringify(views))
  } catch {
    // They last as long as the page.
  }
}

/** With the view, which replaces the one with its name; sorted by name. */
export function withView(views: readonly SavedView[], view: SavedView): SavedView[] {
  return [...withoutView(views, view.name), view].sort((a, b) => a.name.localeCompare(b.name))
}

export function withoutView(views: readonly SavedView[], name: string): SavedView[] {
  return views.filter((other) => other.name !== name)
}
