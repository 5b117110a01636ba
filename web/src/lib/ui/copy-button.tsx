import { useEffect, useState } from 'react'

import { shortDigest } from '@/lib/format'

const SHOWN_MILLISECONDS = 1500

interface Props {
  text: string
  /** Names the copied text in the accessible name: "Copy digest". */
  label: string
}

export function CopyButton({ text, label }: Props) {
  const [outcome, setOutcome] = useState<'Copied' | 'Refused'>()

  useEffect(() => {
    if (outcome === undefined) return
    const timer = setTimeout(() => {
      setOutcome(undefined)
    }, SHOWN_MILLISECONDS)
    return () => {
      clearTimeout(timer)
    }
  }, [outcome])

  const copy = async () => {
    setOutcome((await copyText(text)) ? 'Copied' : 'Refused')
  }

  return (
    <button type="button" className="copy-button" aria-label={`Copy ${label}`} onClick={() => void copy()}>
      <span aria-live="polite">{outcome ?? 'Copy'}</span>
    </button>
  )
}

/** Copies text; false when the browser refuses. */
async function copyText(text: string): Promise<boolean> {
  // The clipboard interface is for secure origins alone, and many services run on plain HTTP inside a site.
  if (!window.isSecureContext) return copyBySelection(text)
  return navigator.clipboard.writeText(text).then(
    () => true,
    () => false,
  )
}

function copyBySelection(text: string): boolean {
  const area = document.createElement('textarea')
  area.value = text
  area.className = 'visually-hidden'
  document.body.append(area)
  area.select()
  // eslint-disable-next-line @typescript-eslint/no-deprecated -- the only way on a plain HTTP origin
  const copied = document.execCommand('copy')
  area.remove()
  return copied
}

/** A command or a snippet to copy. */
export function Command({ text, label }: { text: string; label: string }) {
  return (
    <div className="command">
      <pre tabIndex={0} aria-label={label}>
        <code>{text}</code>
      </pre>
      <CopyButton text={text} label={label} />
    </div>
  )
}

export function ShortDigest({ value }: { value: string | null }) {
  if (value === null) return <span className="muted">–</span>
  return (
    <span className="digest">
      <code title={value}>{shortDigest(value)}</code>
      <CopyButton text={value} label="digest" />
    </span>
  )
}
