/** The permissions of each role, from the least to the most. */
export const MAY = {
  viewer: 'reads everything about experiments and changes nothing',
  researcher: 'submits and changes experiments, and lets participants in',
  admin: 'does everything, users and the audit log too',
} as const

type Role = keyof typeof MAY

export const ROLES = Object.keys(MAY) as Role[]

/** The role that a form names; what reads only if it names none. */
export function roleOf(value: unknown): Role {
  return ROLES.find((role) => role === value) ?? 'viewer'
}
