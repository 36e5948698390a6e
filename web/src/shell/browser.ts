// Handing text over to the person: the clipboard, a file.

export interface Exported {
  name: string;
  type: string;
  content: string;
}

/** Returns whether the browser allowed it. */
export async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

export function download({ name, type, content }: Exported): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href)); // after the browser has taken it
}
