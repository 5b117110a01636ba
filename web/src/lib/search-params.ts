export type Search = Record<string, string | string[]>

/** `?state=a&state=b&name=x` → `{state: ['a', 'b'], name: 'x'}`: plain addresses that a person can edit. */
export function parseSearch(text: string): Search {
  const params = new URLSearchParams(text)
  return Object.fromEntries(
    [...new Set(params.keys())].map((key) => {
      const values = params.getAll(key)
      return [key, values.length > 1 ? values : (values[0] ?? '')]
    }),
  )
}

/** The inverse of {@link parseSearch}; undefined and empty values leave the address. */
export function stringifySearch(search: Record<string, unknown>): string {
  const params = new URLSearchParams()
  for (const [key, value] of Object.entries(search)) {
    for (const item of Array.isArray(value) ? value : [value]) {
      if (typeof item === 'number' || (typeof item === 'string' && item !== '')) params.append(key, String(item))
    }
  }
  // A query may hold a plain comma (RFC 3986, 3.4), and lists read better with it.
  return params.size > 0 ? `?${params.toString().replaceAll('%2C', ',')}` : ''
}

/** One of the allowed words, or undefined: an address typed by hand never breaks a page. */
export function oneOf<T extends string>(allowed: readonly T[], value: unknown): T | undefined {
  return allowed.find((word) => word === value)
}

/** Any text but the empty one. */
export function word(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}

/** The allowed ones of the given words, in the allowed order. */
export function someOf<T extends string>(allowed: readonly T[], value: unknown): T[] {
  const given: unknown[] = Array.isArray(value) ? value : [value]
  return allowed.filter((word) => given.includes(word))
}

/** A whole number from 1, or undefined. */
export function positiveInteger(value: unknown): number | undefined {
  return wholeNumber(value, 1)
}

/** A whole number from `least`, or undefined. */
export function wholeNumber(value: unknown, least = 0): number | undefined {
  const number = Number(value)
  return isGiven(value) && Number.isSafeInteger(number) && number >= least ? number : undefined
}

/** A number within bounds, or undefined. */
export function numberWithin(value: unknown, least: number, most: number): number | undefined {
  const number = Number(value)
  return isGiven(value) && number >= least && number <= most ? number : undefined
}

function isGiven(value: unknown): boolean {
  return typeof value === 'number' || (typeof value === 'string' && value !== '')
}
