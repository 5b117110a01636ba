import { useEffect, useState } from 'react'

import { copyText } from '@/lib/copy-text'

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
