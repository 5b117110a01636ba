import { shortDigest } from '@/lib/format'

import { CopyButton } from './copy-button'

export function ShortDigest({ value }: { value: string | null }) {
  if (value === null) return <span className="muted">–</span>
  return (
    <span className="digest">
      <code title={value}>{shortDigest(value)}</code>
      <CopyButton text={value} label="digest" />
    </span>
  )
}
