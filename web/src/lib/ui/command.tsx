import { CopyButton } from './copy-button'

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
